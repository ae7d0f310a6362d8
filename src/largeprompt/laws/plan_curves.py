r"""The error of a planned head against the prompt length, from several sides."""

import dataclasses
import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from largeprompt.laws.curve import error_curve
from largeprompt.laws.exact import LARGEST_N, gaussian_law
from largeprompt.laws.outlook import output_bound
from largeprompt.laws.phases import frozen_length, linear_length
from largeprompt.laws.plan import Plan
from largeprompt.laws.query_plan import QueryPlan, relative_limit
from largeprompt.laws.spectrum import QueryLawSpectrum

Array = NDArray[np.float64]

POINTS = 61
BEYOND = 30.0  # how many times the planned length the curves go on


@final
@dataclasses.dataclass(frozen=True, eq=False)
class PlanCurves:
    r"""Relative root-mean-square errors against the prompt length.

    Attributes:
        n: The lengths.
        exact: The exact law.
        bound: The proven bound; infinite where there is none.
        asymptotic: The leading order $e^{s^2/2} \sqrt{(1 + s^2/d)/n}$, or the limit of
            the average over queries; infinite where there is none.
        edges: The lengths where the head leaves the frozen and enters the linear
            phase; None for a random query, which has no single phase.
    """

    n: Array
    exact: Array
    bound: Array
    asymptotic: Array
    edges: tuple[float, float] | None


def plan_curves(plan: Plan) -> PlanCurves:
    """Return the curves of the head of a plan, over the lengths around it."""
    v, response = plan.logit_variance, plan.logit_variance / plan.dim
    edges = frozen_length(v), linear_length(v)
    n = _lengths(max(plan.n, min(edges[1], 1e4 * plan.n)))
    bound = output_bound(v, plan.dim)
    law = gaussian_law(n, v)
    return PlanCurves(
        n=n,
        exact=np.sqrt(law.mean_square_error(response=response, variance=1.0)),
        bound=np.sqrt([bound.mse(length) for length in n]),
        asymptotic=np.sqrt((1 + response) / n) * math.exp(v / 2),
        edges=edges,
    )


def query_plan_curves(plan: QueryPlan, spectrum: QueryLawSpectrum) -> PlanCurves:
    """Return the curves averaged over the queries, over the lengths around a plan."""
    n = _lengths(plan.n)
    curve = error_curve(
        n, spectrum.logit_eigenvalues, spectrum.responses, spectrum.variance
    )
    return PlanCurves(
        n=n,
        exact=np.sqrt(curve.mean_square_error / spectrum.variance),
        bound=np.full_like(n, math.inf),
        asymptotic=np.sqrt(relative_limit(spectrum) / n),
        edges=None,
    )


def _lengths(middle: float) -> Array:
    return np.geomspace(1.0, min(BEYOND * middle, LARGEST_N), POINTS)
