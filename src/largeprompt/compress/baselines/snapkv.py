"""The tokens that the latest queries weigh most, and the latest tokens."""

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
from largeprompt.compress.baselines.scores import pooled_weights
from largeprompt.compress.compact import Compact
from largeprompt.compress.prompt import Compressor, LayerPrompt


@final
@dataclasses.dataclass(frozen=True)
class SnapKV(Compressor):
    """Keep the tokens that the last `window` queries weigh most, drop the rest.

    The observation window is always kept; elsewhere its mean weights, averaged over
    `kernel` neighbouring positions and over the query heads, rank the tokens. Sinks
    are kept by name: they rank first anyway.

    Cites:
        [snapkv:24].
    """

    window: int = 64
    kernel: int = 5
    sinks: int = 4

    @override
    def compress(self, prompt: LayerPrompt, budget: Float[Tensor, " b"]) -> Compact:
        count = tokens_kept(prompt, budget, least=self.sinks + self.window)
        scores = pooled_weights(prompt, self.window, self.kernel)
        always = sinks_and_window(prompt.valid, self.sinks, self.window)
        kept = highest(scores, prompt.valid, always, count)
        return Compact(atoms_of(prompt, kept), None)
