r"""The limit operator of a head, scale Cov(v, k), and how its size is spread."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

PIECE = 4096  # tokens turned to float64 at a time
LARGEST = 32  # singular values that are kept


def covariance(
    one: Float[Tensor, "n a"], other: Float[Tensor, "n b"]
) -> Float64[Tensor, "a b"]:
    r"""Return $\mathrm{Cov}$ of two columns of tokens, summed in float64 by pieces."""
    n = len(one)
    means = [x.mean(0, dtype=torch.float64) for x in (one, other)]
    total = torch.zeros(
        one.shape[-1], other.shape[-1], dtype=torch.float64, device=one.device
    )
    for start in range(0, n, PIECE):
        a, b = (
            x[start : start + PIECE].double() - mean
            for x, mean in zip((one, other), means, strict=True)
        )
        total += a.mT @ b
    return total / n


def effective_rank(singular_values: Float64[Tensor, " r"]) -> float:
    r"""Return $(\sum_i \sigma_i^2)^2 / \sum_i \sigma_i^4$: r of equal size count as r.

    NaN for an operator that is zero.
    """
    squares = singular_values.square()
    return float(squares.sum().square() / squares.square().sum())
