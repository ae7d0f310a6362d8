r"""Plan a prompt for a random query: length or error, averaged over the query law."""

import dataclasses
import math
from typing import final

from largeprompt.laws.curve import error_curve
from largeprompt.laws.phases import Phase, phase
from largeprompt.laws.plan import smallest_n
from largeprompt.laws.rates import limit_constant, rate_exponents
from largeprompt.laws.spectrum import QueryLawSpectrum
from largeprompt.laws.status import Status


@final
@dataclasses.dataclass(frozen=True)
class QueryPlan:
    r"""A prompt length and the error it achieves, averaged over a Gaussian query.

    Attributes:
        n: The prompt length, in tokens.
        eps: The root mean square error over tokens and queries, relative to the root
            mean square size of a (centred) value.
        logit_variance: The mean logit variance of a query, $\sum_i \lambda_i$.
        dim: The dimension of the query's spectrum.
        inverse_ess: The expected inverse effective sample size.
        phase: The phase of a query of the mean logit variance.
        rate: $r$ of the mean square error's asymptotic $n^{-r}$.
        rate_status: Whether that is proven (asymptotic) or confirmed by numbers.
    """

    n: int
    eps: float
    logit_variance: float
    dim: int
    inverse_ess: float
    phase: Phase
    rate: float
    rate_status: Status


def solve_over_queries(
    spectrum: QueryLawSpectrum, *, n: int | None = None, eps: float | None = None
) -> QueryPlan:
    r"""Solve for the one of `n` and `eps` that is not given.

    Args:
        spectrum: The head and its query law.
        n: Prompt length, an integer from 1 to $10^{15}$.
        eps: Relative root-mean-square error, above 0.

    Raises:
        ValueError: Not exactly one unknown, or an argument outside its range.
        UnreachableTargetError: No prompt of up to $10^{15}$ tokens meets `eps`.
    """
    if (n is None) == (eps is None):
        raise ValueError(
            "exactly one of n and eps must be left out with a query law; got "
            f"{'both' if n is None else 'neither'} left out"
        )
    if n is None:
        assert eps is not None, "one unknown"
        if not 0 < eps < math.inf:
            raise ValueError(f"eps must be a number above 0; got {eps}")
        n = smallest_n(lambda size: averaged_error(spectrum, size), eps)
    nothing = [0.0] * len(spectrum.logit_eigenvalues)
    inverse_ess = error_curve(n, spectrum.logit_eigenvalues, nothing, 1.0)
    mean = math.fsum(spectrum.logit_eigenvalues)
    rate = rate_exponents(max(spectrum.logit_eigenvalues))
    return QueryPlan(
        n=n,
        eps=averaged_error(spectrum, n),
        logit_variance=mean,
        dim=len(spectrum.logit_eigenvalues),
        inverse_ess=float(inverse_ess.mean_square_error[0]),
        phase=phase(n, mean),
        rate=rate.mean_square,
        rate_status=rate.status,
    )


def averaged_error(spectrum: QueryLawSpectrum, n: float) -> float:
    """Return the exact relative root-mean-square error at `n` tokens."""
    curve = error_curve(
        n, spectrum.logit_eigenvalues, spectrum.responses, spectrum.variance
    )
    return math.sqrt(curve.mean_square_error[0] / spectrum.variance)


def relative_limit(spectrum: QueryLawSpectrum) -> float:
    r"""Return $\lim n \varepsilon^2$, infinite from $\lambda = \frac12$ on."""
    limit = limit_constant(
        spectrum.logit_eigenvalues, spectrum.responses, spectrum.variance
    )
    return limit / spectrum.variance
