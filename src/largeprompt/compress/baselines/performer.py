r"""Positive random features of the softmax kernel.

With $w \sim N(0, I)$,
$E\, e^{w \cdot u - |u|^2/2} e^{w \cdot k - |k|^2/2} = e^{u \cdot k}$: a sum over
features of what tokens sent there takes the place of the sum over tokens. Keys are
taken about their mean, and tilts and keys are first brought to the same mean square,
which changes no logit difference and lowers the variance.
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.audit.limits import Answer
from largeprompt.compress.baselines.feature_map import FeatureMap, Features
from largeprompt.compress.prompt import LayerPrompt

FLOAT = torch.float32.itemsize


@final
@dataclasses.dataclass(frozen=True)
class Performer(FeatureMap):
    """Orthogonal positive random features (FAVOR+).

    The projection follows from the seed and weighs nothing.

    Cites:
        [performer:20].
    """

    seed: int = 0

    @override
    def width(self, prompt: LayerPrompt, size: float) -> int:
        k, v = prompt.key.shape[-1], prompt.value.shape[-1]
        return max(1, int((size / FLOAT - k - 1) / (v + 1)))

    @override
    def features(
        self,
        key: Float[Tensor, "n k"],
        value: Float[Tensor, "n v"],
        tilt: Float[Tensor, "m k"],
        width: int,
    ) -> Features:
        mean = key.mean(0)
        centred = key - mean
        ratio = centred.square().sum(-1).mean() / tilt.square().sum(-1).mean()
        stretch = ratio**0.25
        scaled = centred / stretch
        projection = orthogonal(width, key.shape[-1], self.seed).to(key)
        logs = projection @ scaled.mT - scaled.square().sum(-1) / 2  # f n
        return PositiveFeatures(
            mean, stretch, projection, logs.logsumexp(-1), logs.softmax(-1) @ value
        )


@final
@dataclasses.dataclass(frozen=True, eq=False)
class PositiveFeatures(Features):
    """For each feature the log-mass of the tokens and their mean value."""

    key_mean: Float[Tensor, " k"]
    stretch: Float[Tensor, ""]
    projection: Float[Tensor, "f k"]
    log_mass: Float[Tensor, " f"]
    value: Float[Tensor, "f v"]

    @property
    @override
    def nbytes(self) -> int:
        return (
            self.key_mean.nbytes
            + self.stretch.nbytes
            + self.log_mass.nbytes
            + self.value.nbytes
        )

    @override
    def answer(self, tilt: Float[Tensor, "g m k"]) -> Answer:
        scaled = tilt * self.stretch
        logs = scaled @ self.projection.mT + self.log_mass
        shift = scaled.square().sum(-1) / 2 - tilt @ self.key_mean
        count = tilt.new_tensor(len(self.log_mass)).log()
        return Answer(logs.logsumexp(-1) - shift - count, logs.softmax(-1) @ self.value)


def orthogonal(count: int, dim: int, seed: int) -> Float[Tensor, "count dim"]:
    """Return normal vectors, orthogonal within each block of `dim`."""
    generator = torch.Generator().manual_seed(seed)
    blocks = -(-count // dim)
    normal = torch.randn(blocks, dim, dim, generator=generator)
    lengths = torch.randn(blocks, dim, dim, generator=generator).norm(dim=-1)
    q, r = torch.linalg.qr(normal)
    # the signs that make the orthogonal matrix uniform
    q = q * r.diagonal(dim1=-2, dim2=-1).sign()[:, None]
    return (q.mT * lengths[..., None]).flatten(0, 1)[:count]
