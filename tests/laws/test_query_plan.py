"""Planning for a random query: averages of the exact law over the query."""

import math

import numpy as np
import pytest

from largeprompt.errors import UnreachableTargetError
from largeprompt.laws import gaussian_law
from largeprompt.laws.plan_curves import query_plan_curves
from largeprompt.laws.query_plan import (
    averaged_error,
    relative_limit,
    solve_over_queries,
)
from largeprompt.laws.spectrum import QueryLawSpectrum


def scalar_head(top: float) -> QueryLawSpectrum:
    """One dimension, V = G = 1: the response is the logit variance."""
    return QueryLawSpectrum((top,), (top,), 1.0)


def hermite_error(top: float, n: float) -> float:
    """The average over a normal query by Gauss and Hermite, of the law itself."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    law = gaussian_law(n, top * nodes**2)
    errors = law.mean_square_error(response=top * nodes**2, variance=1.0)
    return math.sqrt(weights @ errors / weights.sum())


@pytest.mark.parametrize("top", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("n", [1, 20, 700])
def test_averaged_error_is_that_of_gauss_hermite_quadrature(top, n):
    ours = averaged_error(scalar_head(top), n)
    assert ours == pytest.approx(hermite_error(top, n), rel=1e-7)


def test_gauss_hermite_quadrature_refutes_the_error_at_the_mean_query():
    law = gaussian_law(700, 0.9)
    at_mean = math.sqrt(law.mean_square_error(response=0.9, variance=1.0))
    assert hermite_error(0.9, 700) != pytest.approx(at_mean, rel=0.1)


def test_solved_n_meets_the_target_and_one_token_fewer_does_not():
    spectrum = QueryLawSpectrum((0.3, 0.2), (0.5, 0.1), 2.0)
    plan = solve_over_queries(spectrum, eps=0.07)
    assert plan.eps == averaged_error(spectrum, plan.n) <= 0.07
    assert averaged_error(spectrum, plan.n - 1) > 0.07
    assert plan.logit_variance == pytest.approx(0.5)
    assert plan.dim == 2


def test_rate_is_one_and_the_limit_finite_below_one_half():
    plan = solve_over_queries(scalar_head(0.25), n=10**12)
    limit = relative_limit(scalar_head(0.25))
    assert plan.rate == 1
    assert limit == pytest.approx(0.75 / 0.5**1.5)
    assert plan.n * plan.eps**2 == pytest.approx(limit, rel=1e-3)
    assert plan.rate_status == "asymptotic"
    beyond = solve_over_queries(scalar_head(1.0), n=100)
    assert beyond.rate == pytest.approx((math.sqrt(5) - 1) / 2)
    assert beyond.rate_status == "numerical"
    assert relative_limit(scalar_head(1.0)) == math.inf


def test_curves_of_a_query_plan_pass_through_it():
    spectrum = scalar_head(0.3)
    plan = solve_over_queries(spectrum, n=50)
    curves = query_plan_curves(plan, spectrum)
    here = np.exp(np.interp(math.log(50), np.log(curves.n), np.log(curves.exact)))
    assert here == pytest.approx(plan.eps, rel=1e-3)
    assert curves.edges is None
    assert np.isinf(curves.bound).all()
    assert (curves.asymptotic > curves.exact).all()


def test_wrong_arguments_are_refused():
    spectrum = scalar_head(0.3)
    with pytest.raises(ValueError, match=r"exactly one of n and eps.*got both"):
        solve_over_queries(spectrum)
    with pytest.raises(ValueError, match=r"exactly one of n and eps.*got neither"):
        solve_over_queries(spectrum, n=3, eps=0.1)
    with pytest.raises(ValueError, match="eps must be a number above 0; got nan"):
        solve_over_queries(spectrum, eps=math.nan)
    with pytest.raises(ValueError, match="n must be a number from 1"):
        solve_over_queries(spectrum, n=0)
    with pytest.raises(UnreachableTargetError, match="no prompt of up to 1e"):
        solve_over_queries(scalar_head(4.0), eps=1e-3)
