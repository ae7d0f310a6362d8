"""The tokens that the last query weighs most."""

import dataclasses
from typing import final

from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.compress.baselines.keeping import (
    atoms_of,
    highest,
    sinks_and_window,
    tokens_kept,
)
from largeprompt.compress.baselines.scores import mean_weights
from largeprompt.compress.compact import Compact
from largeprompt.compress.prompt import Compressor, LayerPrompt


@final
@dataclasses.dataclass(frozen=True)
class Tova(Compressor):
    """Keep the tokens that the very last query weighs most, and the last token.

    In one step at the end of the prompt, with the weights averaged over the query heads
    of each KV head; the original averages over the whole layer.

    Cites:
        [tova:24].
    """

    @override
    def compress(self, prompt: LayerPrompt, budget: Float[Tensor, " b"]) -> Compact:
        count = tokens_kept(prompt, budget, least=1)
        scores = mean_weights(prompt, 1).mean(1)
        always = sinks_and_window(prompt.valid, 0, 1)
        kept = highest(scores, prompt.valid, always, count)
        return Compact(atoms_of(prompt, kept), None)
