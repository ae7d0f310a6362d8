r"""$\phi$ and $(\psi - \phi)/s^2$ at many lengths, as splines that are quick to read.

`law_table` interpolates by one polynomial of high degree: exact to 1e-8, slow on
thousands of points. Here the same functions of $s^2$ are cubic Hermite splines on a
fine uniform grid, one table for all lengths at once, read in a few operations a point.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from numpy.polynomial import Chebyshev, chebyshev

from largeprompt.icl.risk import Array
from largeprompt.laws.curve import law_over_lengths

DEGREE = 256  # of the polynomials behind the splines: relative error below 1e-9
MAX_LOGIT_VARIANCE = 400.0
CELLS = 16_000  # cells of width 1/40: the spline adds less than 1e-9


class LawValues(NamedTuple):
    r"""The two functions and their derivatives in $s^2$."""

    inverse_ess: Array
    inverse_ess_slope: Array
    excess: Array
    excess_slope: Array


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LawSpline:
    r"""The exact law at one length, on $0 \le s^2 \le 400$.

    Attributes:
        n: The prompt length.
        coefficients: Of the cubic in each cell, of shape (cells, 4, 2): by power of the
            place in the cell, from 0 to 1, then $\phi$ and $(\psi - \phi)/s^2$.
    """

    n: float
    coefficients: Array

    def __call__(self, logit_variance: Array) -> LawValues:
        """Return the values at a vector of logit variances.

        Beyond 400 the functions are continued as constants: the trial steps of a solver
        may go there, and `SoftmaxRisk.logit_variances` refuses an answer that does.
        """
        place = logit_variance * (CELLS / MAX_LOGIT_VARIANCE)
        within = place <= CELLS
        place = np.where(within, place, CELLS)
        cell = np.minimum(place.astype(np.int64), CELLS - 1)
        t = (place - cell)[:, None]
        c0, c1, c2, c3 = self.coefficients[cell].transpose(1, 0, 2)
        values = c0 + t * (c1 + t * (c2 + t * c3))
        slopes = c1 + t * (2 * c2 + 3 * t * c3)
        slopes *= (within * (CELLS / MAX_LOGIT_VARIANCE))[:, None]
        return LawValues(values[:, 0], slopes[:, 0], values[:, 1], slopes[:, 1])


def law_splines(lengths: Sequence[float]) -> list[LawSpline]:
    """Return the splines of several lengths; together they cost little more than one.

    Args:
        lengths: Prompt lengths from 1 to $10^{15}$.
    """
    n = np.asarray(lengths, dtype=float)
    nodes = chebyshev.chebpts1(DEGREE + 1)
    variances = MAX_LOGIT_VARIANCE * (nodes + 1) / 2
    laws = np.stack([law_over_lengths(n, float(v)) for v in variances])  # node, 2, n
    logs = np.log(laws)
    scale = np.where(np.arange(DEGREE + 1) == 0, 1.0, 2.0) / (DEGREE + 1)
    matrix = scale[:, None] * chebyshev.chebvander(nodes, DEGREE).T
    grid = np.linspace(0, MAX_LOGIT_VARIANCE, CELLS + 1)
    domain = [0, MAX_LOGIT_VARIANCE]
    splines = []
    for k, length in enumerate(n):
        values, slopes = np.empty((2, 2, CELLS + 1))
        for row in range(2):
            log = Chebyshev(matrix @ logs[:, row, k], domain)
            values[row] = np.exp(log(grid))
            slopes[row] = values[row] * log.deriv()(grid) * (grid[1] - grid[0])
        splines.append(LawSpline(float(length), _hermite(values, slopes)))
    return splines


def _hermite(values: Array, slopes: Array) -> Array:
    """Return the coefficients of the cubics with these values and slopes at nodes."""
    left, right = values[:, :-1], values[:, 1:]
    start, end = slopes[:, :-1], slopes[:, 1:]
    rise = right - left
    cubics = [left, start, 3 * rise - 2 * start - end, start + end - 2 * rise]
    return np.ascontiguousarray(np.stack(cubics).transpose(2, 0, 1))
