r"""How far the output moves when a prompt grows: nested prompts of Gaussian tokens.

A prompt of $n$ tokens is extended by $m$ more, and the output goes from $T_n$ to
$T_{n+m}$. The two share $n$ tokens, so the second moment of their difference needs two
Laplace variables, one for each normaliser. It stays one-dimensional all the same: the
integral over the smaller variable is a running integral (docs/theory.md, section 6).
"""

import dataclasses
import math
from typing import ClassVar, final

import numpy as np

from largeprompt.laws.cumulative import running_integral
from largeprompt.laws.exact import (
    LARGEST_LOGIT_VARIANCE,
    LARGEST_N,
    Array,
    check_range,
)
from largeprompt.laws.laplace import STEP, LaplaceMoments, laplace_moments, outer_grid
from largeprompt.laws.status import Status

REFINEMENT = 4  # grids of step STEP interleaved: running integrals need a finer one
SMALLEST_SCALE = 1e-9  # stands for zero: everything is even and analytic in the scale


@final
@dataclasses.dataclass(frozen=True)
class DriftLaw:
    r"""Second moment of $T_{n+m} - T_n$ for nested prompts of Gaussian tokens.

    $$ E\|T_{n+m} - T_n\|^2 =
       \epsilon \|V G u\|^2 + \alpha\, \mathrm{tr}(V G V^\top). $$

    Attributes:
        n: The tokens in both prompts.
        extra: The tokens $m$ in the longer prompt alone.
        logit_variance: $s^2$.
        across: $\alpha = E \sum_i (w'_i - w_i)^2$, the mean square per direction across
            the tilt.
        along: $\alpha + s^2 \epsilon$, the mean square along the tilt.
        parallel_excess: $\epsilon$, the excess along the tilt over $s^2$.
    """

    status: ClassVar[Status] = Status.EXACT
    n: float
    extra: float
    logit_variance: float
    across: float
    along: float
    parallel_excess: float

    def mean_square(self, response: float, variance: float) -> float:
        r"""Return $E\|T_{n+m} - T_n\|^2$ of a head.

        Args:
            response: $\|V G u\|^2$; for joint tokens $\|\mathrm{Cov}(v, k) q\|^2$.
            variance: $\mathrm{tr}(V G V^\top)$; for joint tokens
                $\mathrm{tr}\,\mathrm{Cov}(v)$.
        """
        return self.parallel_excess * response + self.across * variance

    def radius(self, response: float, variance: float, delta: float) -> float:
        r"""Return $r$ with $P(\|T_{n+m} - T_n\| \ge r) \le \delta$.

        A bound, not a quantile: Markov's inequality for the exact second moment, so
        $r^2 = E\|T_{n+m} - T_n\|^2 / \delta$. It holds for Gaussian tokens.

        Raises:
            ValueError: `delta` is not strictly between 0 and 1.
        """
        if not 0 < delta < 1:
            raise ValueError(f"delta must be strictly between 0 and 1; got {delta}")
        return math.sqrt(self.mean_square(response, variance) / delta)


def drift_law(n: float, extra: float, logit_variance: float) -> DriftLaw:
    r"""Return the exact second moment of the drift from `n` to `n + extra` tokens.

    Every term of it is computed without subtracting moments of the two prompts, so
    that one token added to a prompt of $10^{12}$ is as accurate as a doubling.

    Args:
        n: Tokens of the shorter prompt, from 1 to $10^{15}$.
        extra: Tokens added, from 1 to $10^{15}$.
        logit_variance: $s^2$ from 0 to 400.

    Raises:
        ValueError: An argument is outside its range or not a number.

    Source: derived in docs/theory.md, section 6.
    """
    check_range("n", np.array(float(n)), 1.0, LARGEST_N)
    check_range("extra", np.array(float(extra)), 1.0, LARGEST_N)
    check_range(
        "logit_variance", np.array(float(logit_variance)), 0.0, LARGEST_LOGIT_VARIANCE
    )
    scale = max(math.sqrt(logit_variance), SMALLEST_SCALE)
    low, high = outer_grid(n + extra, scale)[0], outer_grid(n, scale)[-1]
    tau, m = _fine_moments(low, high, scale)
    step = STEP / REFINEMENT

    def one(size: float) -> Array:
        return size * np.exp((size - 1) * m.log_transform)

    def two(size: float) -> Array:
        return size * (size - 1) * np.exp((size - 2) * m.log_transform)

    # excess of E[(sum y f)^2 e^{-t sum y}] over the same across the tilt, over s^2
    curvature = m.second - 3 * m.third + m.fourth
    longer = np.exp(n * m.log_transform)
    new_across = longer @ (one(extra) * m.second)
    new_excess = longer @ (one(extra) * curvature + two(extra) * m.second**2)

    # what the new tokens take: E[(S' / (S + S'))^2 | S], with 1/S^2 taken out
    taken = one(extra) * m.second + two(extra) * m.first**2
    growth = np.exp(tau - tau[-1])
    share = running_integral(taken, step)
    share -= running_integral(taken * growth, step) / growth
    old_across = (one(n) * m.second) @ share
    old_excess = (one(n) * curvature + two(n) * m.second**2) @ share

    crossed = one(extra) * (m.second - m.third) - two(extra) * m.first * m.second
    cross_excess = 2 * (one(n) * m.second) @ running_integral(crossed, step)

    across = step * float(new_across + old_across)
    excess = step * float(new_excess + old_excess + cross_excess)
    return DriftLaw(
        n=n,
        extra=extra,
        logit_variance=logit_variance,
        across=across,
        along=across + logit_variance * excess,
        parallel_excess=excess,
    )


def _fine_moments(
    low: float, high: float, scale: float
) -> tuple[Array, LaplaceMoments]:
    """Return a grid over [`low`, `high`] and the moments there, at a finer step."""
    coarse = low + STEP * np.arange(math.ceil((high - low) / STEP) + 1)
    shifts = STEP * np.arange(REFINEMENT) / REFINEMENT
    grids = [laplace_moments(coarse + shift, scale) for shift in shifts]
    columns = (
        np.stack([getattr(grid, field.name) for grid in grids], axis=-1).ravel()
        for field in dataclasses.fields(LaplaceMoments)
    )
    return (coarse[:, None] + shifts).ravel(), LaplaceMoments(*columns)
