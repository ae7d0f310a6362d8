"""Confidence intervals that assume nothing of a distribution."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

Array = NDArray[np.float64]

LEVEL = 0.95


def median_interval(values: Array, level: float = LEVEL) -> tuple[Array, Array]:
    r"""Return limits of the median along the last axis, from order statistics.

    The $r$-th smallest and the $r$-th largest of $m$ independent draws enclose the
    median of their law with probability at least $1 - 2 P(B \le r - 1)$, $B$ binomial
    of $m$ halves, whatever the law; the largest $r$ that keeps the level. NaN where
    too few draws reach it (5 or fewer at 95%).

    Args:
        values: Draws, of shape (..., m).
        level: The probability that the limits enclose the median, at least.

    Source: David and Nagaraja (2003) [david-nagaraja:03], section 7.1.
    """
    m = values.shape[-1]
    tails = 2 * binom.cdf(np.arange(m), m, 0.5)
    rank = int(np.searchsorted(tails, 1 - level, side="right"))
    if rank < 1:
        nothing = np.full(values.shape[:-1], np.nan)
        return nothing, nothing
    ordered = np.sort(values, axis=-1)
    return ordered[..., rank - 1], ordered[..., m - rank]
