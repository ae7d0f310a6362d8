r"""Bounds on every logit of a set: what a proven certificate asks of the weights.

No sample bounds the mean of weights of which nothing is known (Bahadur and Savage,
1956): a single unseen token may carry it. Reading all keys, exactly or at eight bits,
bounds every logit, and then the values of a few tokens are enough.
"""

import dataclasses
from typing import Self, final

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

LEVELS = 255  # steps that eight bits can tell apart


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LogitEnvelope:
    r"""Every logit lies between `upper - width` and `upper`.

    Attributes:
        upper: A bound on the logit of each token.
        width: How far below it the logit can lie; 0 where the logits are known.
    """

    upper: Float[Tensor, "*b m n"]
    width: Float[Tensor, "*b m"]

    @classmethod
    def exact(cls, tilt: Float[Tensor, "*b m k"], key: Float[Tensor, "*b n k"]) -> Self:
        """Return the logits themselves, at the price of reading every key."""
        return cls(tilt @ key.mT, tilt.new_zeros(tilt.shape[:-1]))


@final
@dataclasses.dataclass(frozen=True, eq=False)
class EightBitKeys:
    r"""Keys rounded to 256 levels a channel: a quarter of the bytes of float32.

    With steps $\Delta$ a logit is off by at most $\frac12 \sum_i |u_i| \Delta_i$
    (derived in docs/theory.md, section 15.2).

    Attributes:
        level: The level of each channel of each key.
        least: The smallest value of each channel.
        step: The distance of two levels.
    """

    level: UInt8[Tensor, "*b n k"]
    least: Float[Tensor, "*b k"]
    step: Float[Tensor, "*b k"]

    @classmethod
    def of(cls, key: Float[Tensor, "*b n k"]) -> Self:
        """Round keys to the nearest level between each channel's extremes."""
        least, most = key.amin(-2), key.amax(-2)
        step = (most - least) / LEVELS
        divisor = step.where(step > 0, 1)[..., None, :]
        level = ((key - least[..., None, :]) / divisor).round().clamp(0, LEVELS)
        return cls(level.to(torch.uint8), least, step)

    @property
    def nbytes(self) -> int:
        """The memory that the rounded keys hold."""
        return self.level.nbytes + self.least.nbytes + self.step.nbytes

    def envelope(self, tilt: Float[Tensor, "*b m k"]) -> LogitEnvelope:
        """Return bounds on every logit, reading the rounded keys alone."""
        scaled = tilt * self.step[..., None, :]
        rounded = scaled @ self.level.to(tilt.dtype).mT
        base = (tilt * self.least[..., None, :]).sum(-1, keepdim=True)
        slack = scaled.abs().sum(-1) / 2
        return LogitEnvelope(rounded + base + slack[..., None], 2 * slack)
