r"""The exact law of softmax attention over a finite prompt of Gaussian tokens.

For i.i.d. tokens $x_i \sim N(m, G)$ and a tilt $u$ the softmax weights
$w_i \propto e^{u \cdot x_i}$ depend on one standard normal variable per token,
$g_i = u \cdot (x_i - m) / s$ with $s^2 = u^\top G u$, the *logit variance*. Every
second moment of the output then follows from a few scalar functions of $(n, s)$, and
each of them is a one-dimensional integral at any $n$: see docs/theory.md, section 2.
"""

import dataclasses
import math
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from largeprompt.laws.laplace import STEP, laplace_moments, outer_grid

Array = NDArray[np.float64]

LARGEST_N = 1e15
LARGEST_LOGIT_VARIANCE = 400.0


@final
@dataclasses.dataclass(frozen=True, eq=False)
class GaussianLaw:
    r"""Second moments of attention over `n` Gaussian tokens, in units of the tokens.

    With $T_n$ the output over $n$ tokens and $T$ its limit (docs/theory.md, section 2)

    $$ E[T_n] = V m + (1 - \phi) V G u, \qquad
       E\|T_n - T\|^2 = \frac{\psi - \phi}{s^2} \|V G u\|^2 + \phi \,
       \mathrm{tr}(V G V^\top). $$

    Every field is a float64 array of the broadcast shape of the arguments (zero
    dimensions for two scalars); relative accuracy 1e-10 or better.

    Attributes:
        n: The prompt length, in tokens.
        logit_variance: $s^2$, the variance of the logits.
        inverse_ess: $\phi = E \sum_i w_i^2$, expected inverse effective sample size.
        parallel_mse: $\psi = E(\sum_i w_i g_i - s)^2$, the error along the tilt.
        parallel_excess: $(\psi - \phi)/s^2$, finite at $s = 0$ where it is $1/n$.
        inverse_ess_slope: $\phi'(s)/s$, finite at $s = 0$ where it is $2(n-1)/n^2$.
    """

    n: Array
    logit_variance: Array
    inverse_ess: Array
    parallel_mse: Array
    parallel_excess: Array
    inverse_ess_slope: Array

    @property
    def shrinkage(self) -> Array:
        r"""$1 - \phi$: the mean output moves this fraction of the limit's $V G u$."""
        return 1.0 - self.inverse_ess

    @property
    def ess(self) -> Array:
        r"""$1/\phi$: how many equally weighted tokens average as well as these."""
        return 1.0 / self.inverse_ess

    def mean_square_error(self, response: ArrayLike, variance: ArrayLike) -> Array:
        r"""Return $E\|T_n - T\|^2$ of a head.

        Args:
            response: $\|V G u\|^2$, the squared size of the limit's response to the
                tilt; for joint (key, value) tokens $\|\mathrm{Cov}(v, k) q\|^2$.
            variance: $\mathrm{tr}(V G V^\top)$; for joint tokens
                $\mathrm{tr}\,\mathrm{Cov}(v)$.
        """
        response, variance = np.asarray(response), np.asarray(variance)
        return self.parallel_excess * response + self.inverse_ess * variance


def gaussian_law(n: ArrayLike, logit_variance: ArrayLike) -> GaussianLaw:
    r"""Return the exact law of attention over `n` Gaussian tokens.

    Args:
        n: Prompt length from 1 to $10^{15}$; integers or floats (the law is analytic
            in $n$), scalars or arrays.
        logit_variance: $s^2 = u^\top G u$ from 0 to 400; broadcast against `n`.

    Raises:
        ValueError: An argument is outside its range or not a number.

    Source: derived in docs/theory.md, section 2.
    """
    lengths, variances = np.broadcast_arrays(
        np.asarray(n, dtype=float), np.asarray(logit_variance, dtype=float)
    )
    check_range("n", lengths, 1.0, LARGEST_N)
    check_range("logit_variance", variances, 0.0, LARGEST_LOGIT_VARIANCE)
    cells = [
        _moments(float(length), float(variance))
        for length, variance in zip(lengths.flat, variances.flat, strict=True)
    ]
    columns = np.array(cells, dtype=float).reshape(*lengths.shape, 3)
    inverse_ess, squares, products = np.moveaxis(columns, -1, 0)
    excess = inverse_ess + squares - 2 * products
    return GaussianLaw(
        n=lengths.copy(),
        logit_variance=variances.copy(),
        inverse_ess=inverse_ess,
        parallel_mse=inverse_ess + variances * excess,
        parallel_excess=excess,
        inverse_ess_slope=2 * (squares - products),
    )


def check_range(name: str, values: Array, low: float, high: float) -> None:
    """Raise a ValueError unless every value is a number in [`low`, `high`]."""
    bad = ~((values >= low) & (values <= high))
    if bad.any():
        raise ValueError(
            f"{name} must be a number from {low:g} to {high:g}; got {values[bad][0]:g}"
        )


def _moments(n: float, logit_variance: float) -> tuple[float, float, float]:
    r"""Return $\phi$, $E[\sum w_i^2 g_i]/s$ and $E[\sum w_i^2 \sum w_j g_j]/s$.

    Stein's identity has taken one factor $g$ and one $s$ out of the last two, so that
    nothing is divided by a small $s$ (docs/theory.md, equations 2.6 to 2.8).
    """
    if n == 1.0:
        return 1.0, 0.0, 0.0
    if logit_variance == 0.0:
        return 1 / n, 2 * (n - 1) / n**2, (n - 1) / n**2
    scale = math.sqrt(logit_variance)
    m = laplace_moments(outer_grid(n, scale), scale)
    others = n * STEP * np.exp((n - 1) * m.log_transform)
    pairs = n * (n - 1) * STEP * np.exp((n - 2) * m.log_transform)
    inverse_ess = others @ m.second
    squares = others @ (2 * m.second - m.third)
    products = (
        others @ (3 * m.third - m.fourth) + pairs @ (m.second * (m.first - m.second))
    ) / 2
    return float(inverse_ess), float(squares), float(products)
