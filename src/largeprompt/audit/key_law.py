r"""How Gaussian the keys of a head are, and over how many directions they spread."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Float64
from torch import Tensor

SMALL = 1e-10  # of the largest eigenvalue: a direction in which keys do not vary


@final
@dataclasses.dataclass(frozen=True, eq=False)
class KeyLaw:
    r"""The law of the keys of some tokens.

    With mean $\bar k$ and covariance $\Sigma$:

    Attributes:
        mean_share: $\|\bar k\|^2 / E\|k\|^2$; NaN where every key is zero.
        rank: $(\mathrm{tr}\,\Sigma)^2 / \mathrm{tr}\,\Sigma^2$; NaN for equal keys.
        kurtosis: $E\,r^4 / (p (p + 2)) - 1$ with $r$ the Mahalanobis distance over the
            $p$ directions in which keys vary (Mardia's kurtosis [mardia:70], relative
            to a Gaussian's); NaN for equal keys.
        spectrum: The eigenvalues of $\Sigma$, largest first.
    """

    mean_share: float
    rank: float
    kurtosis: float
    spectrum: Float64[Tensor, " k"]


def key_law(keys: Float[Tensor, "n k"]) -> KeyLaw:
    """Return the law of keys, in float64."""
    if len(keys) < 2:  # they have no spread
        nothing = torch.full((keys.shape[-1],), torch.nan, dtype=torch.float64)
        return KeyLaw(torch.nan, torch.nan, torch.nan, nothing)
    tokens = keys.double()
    mean = tokens.mean(0)
    tokens = tokens - mean
    values, vectors = torch.linalg.eigh(tokens.mT @ tokens / len(tokens))
    values = values.flip(0).clamp_min(0)
    total, size = values.sum(), mean.square().sum()
    varies = values > SMALL * values[0]
    p = int(varies.sum())
    white = tokens @ (vectors.flip(1)[:, varies] / values[varies].sqrt())
    fourth = white.square().sum(-1).square().mean() / (p * (p + 2)) if p else torch.nan
    return KeyLaw(
        mean_share=float(size / (size + total)),
        rank=float(total.square() / values.square().sum()),
        kurtosis=float(fourth) - 1,
        spectrum=values.cpu(),
    )
