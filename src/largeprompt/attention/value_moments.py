r"""Moments of $\|V(x - c)\|^2$: as many as a family knows.

An open function: a measure with higher moments in closed form registers them, and the
ceiling of a bound that is averaged over queries falls.
"""

import functools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention.moments import fourth_moment, second_moment
from largeprompt.measures import Gaussian, Measure

GAUSSIAN_ORDERS = 24  # the best order is about log n


@functools.singledispatch
def value_moments(
    measure: Measure, value: Float[Tensor, "v d"], center: Float[Tensor, " d"]
) -> tuple[float, ...]:
    r"""Return $E\|V(x - c)\|^{2p}$ for $p = 1, 2$, or higher where a family knows them.

    Args:
        measure: The law of $x$.
        value: The matrix $V$.
        center: The centre $c$.
    """
    rest, form = torch.zeros_like(center), value.mT @ value
    return (
        second_moment(measure, rest, center, form),
        fourth_moment(measure, rest, center, form, form),
    )


@value_moments.register
def _(
    measure: Gaussian, value: Float[Tensor, "v d"], center: Float[Tensor, " d"]
) -> tuple[float, ...]:
    r"""By the cumulants $2^{k-1} (k-1)! [\mathrm{tr} M^k + k\, b^\top M^{k-1} b]$."""
    cov = value @ measure.cov @ value.mT
    shift = value @ (measure.mean - center)
    eigenvalues, axes = torch.linalg.eigh(cov)
    along = (axes.mT @ shift).square()
    cumulants = [
        2 ** (k - 1)
        * math.factorial(k - 1)
        * float((eigenvalues**k + k * eigenvalues ** (k - 1) * along).sum())
        for k in range(1, GAUSSIAN_ORDERS + 1)
    ]
    moments = [1.0]
    for p in range(1, GAUSSIAN_ORDERS + 1):
        moments.append(
            math.fsum(
                math.comb(p - 1, k - 1) * cumulants[k - 1] * moments[p - k]
                for k in range(1, p + 1)
            )
        )
    return tuple(moments[1:])
