r"""The error of a head against the prompt length, averaged over a Gaussian query law.

The exact law of one query depends on it through the logit variance $v$ alone, so the
average over $z \sim N(0, S_z)$ is an integral over $v$ against the density of a
quadratic form. The inner expectations of the law do not depend on the prompt length:
one pass serves a whole curve of lengths.
"""

import dataclasses
import math
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from largeprompt.laws.exact import LARGEST_N, check_range
from largeprompt.laws.laplace import STEP, laplace_moments, outer_grid
from largeprompt.laws.quadratic_form import density, log_chernoff, saddle_points
from largeprompt.laws.rates import rate_exponents
from largeprompt.laws.status import Status

Array = NDArray[np.float64]

NODES = 96  # of Gauss and Legendre over the standard deviation of the logits
NEGLIGIBLE = 30.0  # nats below the result at which the average is cut
LARGEST_AVERAGED = 4000.0  # logit variance


@final
@dataclasses.dataclass(frozen=True, eq=False)
class ErrorCurve:
    r"""$E_z E\|T_n - T\|^2$ against $n$, the query averaged over.

    Attributes:
        n: The prompt lengths, in tokens.
        mean_square_error: The error at each.
    """

    status: ClassVar[Status] = Status.EXACT
    n: Array
    mean_square_error: Array

    @property
    def exponents(self) -> Array:
        r"""$-d\log(\text{error})/d\log n$ between neighbouring lengths."""
        return -np.diff(np.log(self.mean_square_error)) / np.diff(np.log(self.n))


def error_curve(
    n: ArrayLike, eigenvalues: ArrayLike, responses: ArrayLike, variance: float
) -> ErrorCurve:
    r"""Return the exact error at each of the lengths `n`, averaged over the query.

    The query is $z \sim N(0, S_z)$, independent of the prompt; with
    $M = S_z^{1/2} U^\top G U S_z^{1/2}$ and $B = V G U S_z^{1/2}$,

    Args:
        n: Prompt lengths from 1 to $10^{15}$, strictly increasing if slopes are asked.
        eigenvalues: $\lambda_i \ge 0$, the spectrum of $M$.
        responses: $b_i = \|B e_i\|^2$ for the unit eigenvectors $e_i$ of $M$; where
            $\lambda_i = 0$ so is $b_i$.
        variance: $\mathrm{tr}(V G V^\top)$.

    Raises:
        ValueError: An argument is outside its range, shapes disagree, or queries of a
            logit variance above 4000 matter (a top eigenvalue of about 50).

    Source: derived in docs/theory.md, section 7.
    """
    lengths = np.atleast_1d(np.asarray(n, dtype=float))
    check_range("n", lengths, 1.0, LARGEST_N)
    spectrum, weights = _checked(eigenvalues, responses)
    check_range("variance", np.array(float(variance)), 0.0, np.inf)
    if len(spectrum) == 0:  # every query has the logits of none
        return ErrorCurve(lengths, variance / lengths)
    deviation, measure = np.polynomial.legendre.leggauss(NODES)
    reach = math.sqrt(largest_variance(spectrum, lengths.max()))
    deviation = reach * (deviation + 1) / 2
    variances = deviation**2
    measure = measure * reach * deviation  # dv = 2 s ds
    plain, weighted = density(variances, spectrum, weights)
    error = np.zeros_like(lengths)
    for k, logit_variance in enumerate(variances):
        inverse_ess, excess = law_over_lengths(lengths, float(logit_variance))
        error += measure[k] * (excess * weighted[k] + inverse_ess * variance * plain[k])
    return ErrorCurve(lengths, error)


def law_over_lengths(n: Array, logit_variance: float) -> tuple[Array, Array]:
    r"""Return $\phi$ and $(\psi - \phi)/s^2$ at many lengths and one logit variance.

    $$ \phi = n \int M_2 L^{n-1} d\tau, \quad \frac{\psi - \phi}{s^2} =
       n \int (M_2 - 3 M_3 + M_4) L^{n-1} d\tau + n(n-1) \int M_2^2 L^{n-2} d\tau . $$
    """
    scale = math.sqrt(logit_variance)
    low, high = outer_grid(n.max(), scale)[0], outer_grid(n.min(), scale)[-1]
    tau = low + STEP * np.arange(math.ceil((high - low) / STEP) + 1)
    m = laplace_moments(tau, scale)
    size = n[:, None]
    others = STEP * size * np.exp((size - 1) * m.log_transform)
    pairs = STEP * size * (size - 1) * np.exp((size - 2) * m.log_transform)
    excess = others @ (m.second - 3 * m.third + m.fourth) + pairs @ m.second**2
    return others @ m.second, excess


def largest_variance(eigenvalues: Array, n: float) -> float:
    r"""Return a logit variance beyond which queries add nothing up to length `n`.

    By Chernoff's bound and $\phi \le \min(1, e^v/n)$, against a result of about
    $n^{-r}$.

    Raises:
        ValueError: It is above 4000.
    """
    top = eigenvalues.max()
    exponent = rate_exponents(float(top)).mean_square
    values = eigenvalues.sum() * np.geomspace(1, 1e5, 400)
    values = values[values <= LARGEST_AVERAGED]
    saddle = saddle_points(values, eigenvalues)
    tail = log_chernoff(values, eigenvalues, saddle)
    tail += exponent * np.minimum(values, math.log(n))
    negligible = tail < -NEGLIGIBLE
    if not negligible.any():
        raise ValueError(
            "the query's logit variance must stay below "
            f"{LARGEST_AVERAGED:g} almost surely; got a top eigenvalue of {top:g} and "
            f"a mean of {eigenvalues.sum():g}"
        )
    return float(values[negligible.argmax()])


def _checked(eigenvalues: ArrayLike, responses: ArrayLike) -> tuple[Array, Array]:
    """Return the positive eigenvalues and their responses."""
    spectrum = np.atleast_1d(np.asarray(eigenvalues, dtype=float))
    weights = np.atleast_1d(np.asarray(responses, dtype=float))
    if spectrum.ndim != 1 or spectrum.shape != weights.shape or len(spectrum) == 0:
        raise ValueError(
            "eigenvalues and responses must be two vectors of one length; "
            f"got shapes {spectrum.shape} and {weights.shape}"
        )
    check_range("eigenvalues", spectrum, 0.0, LARGEST_AVERAGED)
    check_range("responses", weights, 0.0, np.inf)
    positive = spectrum > spectrum.max() * np.finfo(float).eps
    return spectrum[positive], weights[positive]
