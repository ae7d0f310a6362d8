r"""How far a set of tokens is from the Gaussian of its own moments, slice by slice.

The projection of a Gaussian vector on any direction is normal, and only a Gaussian's
are on all. Over random directions each projection, brought to mean 0 and variance 1, is
compared with the standard normal law.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from largeprompt.measures import Gaussian


class Sliced(NamedTuple):
    r"""Distances of projections to the standard normal law.

    Attributes:
        kolmogorov: Mean over directions of $\sup_x |F(x) - \Phi(x)|$.
        wasserstein: Mean over directions of $\int |F^{-1} - \Phi^{-1}|$, the midpoint
            rule at the tokens' ranks.
        kurtosis: Median over directions of the excess kurtosis.
    """

    kolmogorov: float
    wasserstein: float
    kurtosis: float


def moments_of(tokens: Float[Tensor, "n d"]) -> Gaussian:
    """Return the Gaussian with the tokens' mean and covariance, in float64."""
    tokens = tokens.double()
    return Gaussian.unchecked(tokens.mean(0), tokens.mT.cov(correction=0))


def unit_directions(
    dim: int, count: int, generator: torch.Generator
) -> Float64[Tensor, "d m"]:
    """Draw directions uniformly from the sphere."""
    drawn = torch.randn(dim, count, generator=generator, dtype=torch.float64)
    return drawn / drawn.norm(dim=0)


def sliced(tokens: Float[Tensor, "n d"], directions: Float64[Tensor, "d m"]) -> Sliced:
    """Return the distances of the tokens' projections to the normal law.

    A direction along which the tokens do not vary is left out.

    Raises:
        ValueError: They vary along none.
    """
    projected = (tokens.double() @ directions).mT
    centred = projected - projected.mean(-1, keepdim=True)
    deviation = centred.square().mean(-1, keepdim=True).sqrt()
    seen = deviation[:, 0] > torch.finfo(torch.float32).eps * projected.abs().amax(-1)
    if not seen.any():
        raise ValueError("tokens must vary along some direction; got equal ones")
    standard = (centred[seen] / deviation[seen]).sort(-1).values
    n = standard.shape[-1]
    normal = torch.special.ndtr(standard)
    rank = torch.arange(n, dtype=torch.float64)
    gap = torch.maximum((rank + 1) / n - normal, normal - rank / n).amax(-1)
    quantile = math.sqrt(2) * torch.erfinv((2 * rank + 1) / n - 1)
    fourth = standard.pow(4).mean(-1) - 3
    return Sliced(
        kolmogorov=float(gap.mean()),
        wasserstein=float((standard - quantile).abs().mean()),
        kurtosis=float(fourth.median()),
    )


def participation_ratio(gaussian: Gaussian) -> float:
    r"""Return $(\mathrm{tr}\, G)^2 / \mathrm{tr}\, G^2$: how many axes carry it."""
    trace = float(gaussian.cov.trace())
    return trace**2 / float(gaussian.cov.square().sum()) if trace > 0 else 0.0
