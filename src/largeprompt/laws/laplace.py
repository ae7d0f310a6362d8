r"""Inner expectations of the exact law: a lognormal Laplace transform and its moments.

With $y = e^{\tau + s g}$, $g \sim N(0, 1)$, the exact law needs on a grid of $\tau$

$$ L(\tau) = E\, e^{-y}, \qquad M_k(\tau) = E[y^k e^{-y}], \quad k = 1, \dots, 4. $$

Both the expectation over $x = s g$ and the integral over $\tau$ use the trapezoid rule,
whose error decays exponentially in 1/step for integrands analytic in a strip: $e^{-y}$
is analytic for $|\mathrm{Im}\,\tau| < \pi/2$, the normal density everywhere. On one
shared grid the expectations are discrete convolutions (docs/theory.md, section 2.3).
"""

import dataclasses
import math
from typing import final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STEP = 0.2  # of tau: the aliasing error |Gamma(4 + 2 pi i / STEP)| is 1e-16
NORMAL_STEP = 0.7  # of g: exp(-2 pi^2 / NORMAL_STEP^2) is below double precision
NORMAL_REACH = 8.6  # standard deviations kept: the mass beyond is below 1e-17
DEPTH = 38.0  # nats below its peak at which an integrand is cut


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LaplaceMoments:
    r"""$\log L$ and $M_1, \dots, M_4$ on a grid of $\tau$."""

    log_transform: Array
    first: Array
    second: Array
    third: Array
    fourth: Array


def outer_grid(n: float, scale: float) -> Array:
    r"""Return the grid of $\tau$, of step `STEP`, that holds the law's integrands.

    The widest integrand is $M_1 L^{n-1}$, which tests the normalisation. With
    $\tau = -\lambda$, both $\log(1 - L)$ and $\log M_1$ are about $-\lambda^2/2s^2$ for
    $\lambda < s^2$ (a few large tokens carry them) and $s^2/2 - \lambda$ beyond (all
    tokens do). The peak is near $n(1 - L) = 1$.
    """
    log_n = math.log(n)
    left = _crossing(log_n + DEPTH, scale)
    # n (1 - L) > 60 on the right; 3 nats for the prefactor that the rule leaves out
    log_left_over = log_n - math.log(60) - 3
    if log_left_over > 0:
        right = -_crossing(log_left_over, scale)
    else:
        right = (NORMAL_REACH + 0.6) * scale
    low, high = -left - 1.0, right + 4.5
    return low + STEP * np.arange(math.ceil((high - low) / STEP) + 1, dtype=float)


def laplace_moments(tau: Array, scale: float) -> LaplaceMoments:
    r"""Return $\log L$ and $M_k$ at each `tau` of a grid made by `outer_grid`."""
    shares_grid = NORMAL_STEP * scale >= STEP
    step = STEP if shares_grid else NORMAL_STEP * scale
    # M_k is the law tilted by k: its mass sits at k s^2, unless e^{-y} cuts it earlier
    reach = min(4 * scale**2 + NORMAL_REACH * scale, 6.0 - tau[0])
    first = math.floor(-NORMAL_REACH * scale / step)
    x = step * np.arange(first, math.ceil(reach / step) + 1)
    density = np.exp(-((x / scale) ** 2) / 2)
    density *= step / (scale * math.sqrt(2 * math.pi))
    if shares_grid:
        exponents = tau[0] + x[0] + step * np.arange(len(tau) + len(x) - 1)
        flipped = density[::-1]

        def mean(values: Array) -> Array:
            return np.convolve(values, flipped, mode="valid")

    else:
        exponents = tau[:, None] + x

        def mean(values: Array) -> Array:
            return values @ density

    y = np.exp(np.minimum(exponents, 7.0))  # e^{-y} is zero there already
    survival = np.exp(-y)
    terms = [survival]
    for _ in range(4):
        terms.append(terms[-1] * y)
    transform, *moments = (mean(term) for term in terms)
    complement = mean(-np.expm1(-y))
    log_transform = np.where(
        complement < 0.5,
        np.log1p(-np.minimum(complement, 0.5)),
        np.log(np.maximum(transform, 1e-300)),
    )
    return LaplaceMoments(log_transform, *moments)


def _crossing(log_n: float, scale: float) -> float:
    r"""Return $\lambda$ with $n (1 - L(-\lambda)) \approx 1$."""
    if 2 * log_n > scale**2:
        return log_n + scale**2 / 2
    return scale * math.sqrt(2 * log_n)
