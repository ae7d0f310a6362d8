"""The tokens that future queries are expected to weigh most."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.compress.baselines.keeping import (
    atoms_of,
    highest,
    sinks_and_window,
    tokens_kept,
)
from largeprompt.compress.compact import Compact
from largeprompt.compress.prompt import Compressor, LayerPrompt


@final
@dataclasses.dataclass(frozen=True)
class ExpectedAttention(Compressor):
    r"""Keep the tokens of the largest expected contribution, for Gaussian queries.

    With queries of mean $m$ and covariance $C$ at the positions to come, a token weighs
    $(\mathrm{softmax}_j(m \cdot k_j + k_j^\top C k_j / 2) + \epsilon) |v_j|$, averaged
    over the query heads. The mean and covariance here are those of the queries that the
    prompt has kept, moved by up to `horizon` positions where positions are rotary.

    Cites:
        [expected-attention:25].
    """

    sinks: int = 4
    horizon: int = 512
    steps: int = 8
    epsilon: float = 0.0

    @override
    def compress(self, prompt: LayerPrompt, budget: Float[Tensor, " b"]) -> Compact:
        count = tokens_kept(prompt, budget, least=self.sinks + 1)
        always = sinks_and_window(prompt.valid, self.sinks, 1)
        kept = highest(self.scores(prompt), prompt.valid, always, count)
        return Compact(atoms_of(prompt, kept), None)

    def scores(self, prompt: LayerPrompt) -> Float[Tensor, "b n"]:
        """Return what each token is expected to contribute."""
        tilt = prompt.scale * self._future(prompt)
        mean = tilt.mean(-2)
        centred = tilt - mean[..., None, :]
        covariance = centred.mT @ centred / tilt.shape[-2]  # b g k k
        key = prompt.key.float()[:, None]
        logits = (key * mean[..., None, :]).sum(-1)
        logits = logits + ((key @ covariance) * key).sum(-1) / 2
        weights = logits.masked_fill(~prompt.valid[:, None], -torch.inf).softmax(-1)
        return (weights.mean(1) + self.epsilon) * prompt.value.float().norm(dim=-1)

    def _future(self, prompt: LayerPrompt) -> Float[Tensor, "b g w k"]:
        query = prompt.query.float()
        if prompt.rotate is None:
            return query
        stride = max(1, self.horizon // self.steps)
        moved = range(stride, self.horizon + 1, stride)
        return torch.cat([prompt.rotate(query, step) for step in moved], -2)
