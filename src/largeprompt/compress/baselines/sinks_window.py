"""The first tokens and the latest ones."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.compress.baselines.keeping import atoms_of, highest, tokens_kept
from largeprompt.compress.baselines.keeping import sinks_and_window as first_and_last
from largeprompt.compress.compact import Compact
from largeprompt.compress.prompt import Compressor, LayerPrompt


@final
@dataclasses.dataclass(frozen=True)
class SinksAndWindow(Compressor):
    """Keep the first tokens and the latest ones, drop the rest.

    The keys keep the positions they had in the prompt.

    Cites:
        [streamingllm:23].
    """

    sinks: int = 4

    @override
    def compress(self, prompt: LayerPrompt, budget: Float[Tensor, " b"]) -> Compact:
        count = tokens_kept(prompt, budget, least=self.sinks + 1)
        always = first_and_last(prompt.valid, self.sinks, 0)
        position = torch.arange(prompt.valid.shape[-1], device=prompt.valid.device)
        recency = position.float().expand_as(prompt.valid)
        kept = highest(recency, prompt.valid, always, count)
        return Compact(atoms_of(prompt, kept), None)
