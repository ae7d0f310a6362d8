r"""The exact law at one prompt length as a smooth function of the logit variance.

All fields are analytic in $v = s^2$, so Chebyshev interpolation in $v$ converges
geometrically. Interpolated are $\log\phi$ and the ratios of the other two fields to
$\phi$, which stay of order one.
"""

import dataclasses
from typing import final

import numpy as np
from numpy.polynomial import Chebyshev, chebyshev
from numpy.typing import ArrayLike

from largeprompt.laws.exact import (
    LARGEST_LOGIT_VARIANCE,
    GaussianLaw,
    check_range,
    gaussian_law,
)

TOLERANCE = 1e-9
LARGEST_DEGREE = 512


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LawTable:
    r"""`gaussian_law(n, .)` interpolated to a relative error below 1e-8.

    Attributes:
        n: The prompt length, in tokens.
        max_logit_variance: The largest $s^2$ the table answers for.
        log_inverse_ess: $\log\phi$ as a function of $s^2$.
        excess_ratio: $(\psi - \phi)/(s^2\phi)$ as a function of $s^2$.
        slope_ratio: $\phi'(s)/(s\phi)$ as a function of $s^2$.
    """

    n: float
    max_logit_variance: float
    log_inverse_ess: Chebyshev
    excess_ratio: Chebyshev
    slope_ratio: Chebyshev

    def __call__(self, logit_variance: ArrayLike) -> GaussianLaw:
        """Return the law at `logit_variance`, an array of any shape.

        Raises:
            ValueError: A value is outside [0, `max_logit_variance`] or not a number.
        """
        variance = np.array(logit_variance, dtype=float)
        check_range("logit_variance", variance, 0.0, self.max_logit_variance)
        inverse_ess = np.exp(self.log_inverse_ess(variance))
        excess = inverse_ess * self.excess_ratio(variance)
        return GaussianLaw(
            n=np.full_like(variance, self.n),
            logit_variance=variance,
            inverse_ess=inverse_ess,
            parallel_mse=inverse_ess + variance * excess,
            parallel_excess=excess,
            inverse_ess_slope=inverse_ess * self.slope_ratio(variance),
        )


def law_table(n: float, max_logit_variance: float) -> LawTable:
    r"""Tabulate the exact law at `n` for logit variances up to `max_logit_variance`.

    The degree doubles until the trailing Chebyshev coefficients are below 1e-9.

    Args:
        n: Prompt length from 1 to $10^{15}$.
        max_logit_variance: Upper end of the table, above 0 and at most 400.

    Raises:
        ValueError: An argument is outside its range or not a number.
    """
    check_range("n", np.array(float(n)), 1.0, np.inf)
    check_range(
        "max_logit_variance",
        np.array(float(max_logit_variance)),
        np.finfo(float).tiny,
        LARGEST_LOGIT_VARIANCE,
    )
    domain = np.array([0.0, max_logit_variance])
    degree = 16
    while True:
        # interpolation at Chebyshev points of the first kind
        points = max_logit_variance * (chebyshev.chebpts1(degree + 1) + 1) / 2
        law = gaussian_law(n, points)
        values = np.stack(
            [
                np.log(law.inverse_ess),
                law.parallel_excess / law.inverse_ess,
                law.inverse_ess_slope / law.inverse_ess,
            ],
            axis=-1,
        )
        matrix = chebyshev.chebvander(chebyshev.chebpts1(degree + 1), degree)
        scale = np.where(np.arange(degree + 1) == 0, 1.0, 2.0) / (degree + 1)
        coefficients = scale[:, None] * (matrix.T @ values)
        tail = np.abs(coefficients[-degree // 8 :]).sum(axis=0)
        if (tail < TOLERANCE).all() or degree >= LARGEST_DEGREE:
            break
        degree *= 2
    fields = (Chebyshev(column, domain) for column in coefficients.T)
    return LawTable(float(n), float(max_logit_variance), *fields)
