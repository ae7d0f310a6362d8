r"""The density of $\sum_i \lambda_i \xi_i^2$ for independent standard normal $\xi_i$.

That is the law of a logit variance under a Gaussian query. The Laplace transform
$\prod_i (1 + 2\lambda_i \rho)^{-1/2}$ is inverted by the trapezoid rule on a parabola
through the saddle point of the integrand, bent to the left as the path of steepest
descent is: a few dozen nodes give nearly full *relative* accuracy at any argument, far
tails included (docs/theory.md, section 7).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONTOUR_STEP = 0.15  # in units of the saddle's width; singularities are 1.06 away
CONTOUR_REACH = 10.8  # the integrand falls at least like exp(-x^2 / 3)
BISECTIONS = 60


class Density(NamedTuple):
    r"""The density $p(v)$ and $\sum_i b_i E[\xi_i^2 \mid v]\, p(v)$."""

    plain: Array
    weighted: Array


def density(values: Array, eigenvalues: Array, weights: Array) -> Density:
    r"""Return the density at each of `values`, plain and weighted by the squares.

    Args:
        values: Where, positive.
        eigenvalues: $\lambda_i$, all positive.
        weights: $b_i$.
    """
    saddle = saddle_points(values, eigenvalues)
    spread = 1 + 2 * eigenvalues * saddle[:, None]
    slopes = 2 * eigenvalues / spread  # v i
    second = (slopes**2).sum(1) / 2
    bend = -(slopes**3).sum(1) / (6 * second)
    x = CONTOUR_STEP * np.arange(math.ceil(CONTOUR_REACH / CONTOUR_STEP))
    y = x / np.sqrt(second)[:, None]  # v x
    path = 1j * y + bend[:, None] * y**2
    plain = np.empty(len(values))
    weighted = np.empty(len(values))
    for k, value in enumerate(values):
        factors = 1 + slopes[k] * path[k][:, None]  # x i
        integrand = np.exp(path[k] * value - np.log(factors).sum(1) / 2)
        integrand *= 1 - 2j * bend[k] * y[k]
        integrand[0] /= 2
        plain[k] = integrand.sum().real
        weighted[k] = (integrand * (weights / spread[k] / factors).sum(1)).sum().real
    scale = CONTOUR_STEP / math.pi / np.sqrt(second)
    scale *= np.exp(log_chernoff(values, eigenvalues, saddle))
    return Density(plain * scale, weighted * scale)


def log_chernoff(values: Array, eigenvalues: Array, saddle: Array) -> Array:
    r"""Return $\rho v - \frac12 \sum_i \log(1 + 2\lambda_i\rho)$ at the saddle.

    For $v$ above the mean it bounds $\log P(\sum_i \lambda_i\xi_i^2 \ge v)$.
    """
    logs = np.log1p(2 * eigenvalues * saddle[:, None])
    return saddle * values - logs.sum(1) / 2


def saddle_points(values: Array, eigenvalues: Array) -> Array:
    r"""Solve $\sum_i \lambda_i / (1 + 2\lambda_i\rho) = v$ for $\rho > -1/2\lambda_1$.

    With $x = 1/(1 + 2\lambda_1\rho)$ the root lies between $v/(d\lambda_1)$ and
    $v/\lambda_1$; bisection in $\log x$.
    """
    top = eigenvalues.max()
    ratios = eigenvalues / top
    high = np.log(values / top)
    low = high - math.log(len(eigenvalues))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        shrink = 1 + ratios * np.expm1(-middle)[:, None]
        below = (eigenvalues / shrink).sum(1) < values
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.expm1(-(low + high) / 2) / (2 * top)
