"""Bounds as functions of their scalars; attention/test_head_bounds.py attacks them."""

import math
import pathlib

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import binom

from largeprompt.errors import UnreachableTargetError
from largeprompt.laws import gaussian_law
from largeprompt.laws.bounds import (
    BilinearGradientBound,
    Bound,
    LargestTokenCeiling,
    MomentRateBound,
    NestedDriftBound,
    OutputBound,
    QueryAveragedBound,
    SubGaussianGradientBound,
    SubGaussianOutputBound,
    TriangleDriftBound,
    UniformRateBound,
)
from largeprompt.laws.bounds.catalogue import theorems_page
from largeprompt.laws.bounds.search import minimum
from largeprompt.laws.bounds.weights import WeightTail
from largeprompt.laws.drift import drift_law

DOCS = pathlib.Path(__file__).parents[2] / "docs"
TRACE, RESPONSE = (
    5.0,
    sum(0.25**k for k in range(5)),
)  # of 0.5^|i-j| in five dimensions: tr G and |G e_1|^2


def gaussian_bound(kappa: float, trace: float, response: float) -> OutputBound:
    return OutputBound(kappa, trace + response, trace + response)


def gradient_bound(kappa: float = 0.5) -> BilinearGradientBound:
    return BilinearGradientBound(
        kappa=kappa,
        query_norm=1.5,
        fluctuation=9.0,
        tau_squared_value=4.0,
        tau_squared=3.0,
        fourth_weighted=200.0,
        fourth=15.0,
        omega_squared_value=2.0,
        omega_squared=3.0,
        limit_squared=4.0,
    )


OUTPUT = gaussian_bound(1.0, TRACE, RESPONSE)
BOUNDS: list[Bound] = [
    OUTPUT,
    gradient_bound(),
    NestedDriftBound(1.0, TRACE + RESPONSE, TRACE + RESPONSE, RESPONSE, 900),
    TriangleDriftBound(OUTPUT, 900),
    QueryAveragedBound((1.0,), (OUTPUT,), (LargestTokenCeiling((6.3, 80.0)),)),
    SubGaussianOutputBound(sigma=1.1, factor=2.0, exponent=0.4),
    SubGaussianGradientBound(sigma=1.1, factor=2.0, exponent=0.4),
    UniformRateBound(constant=3.0),
    MomentRateBound(whitened_norm=0.5, constant=3.0),
]


@pytest.fixture(params=BOUNDS, ids=lambda bound: type(bound).__name__)
def bound(request) -> Bound:
    return request.param


def test_every_theorem_is_tested_here():
    assert {type(bound) for bound in BOUNDS} == set(Bound.__subclasses__())


def test_page_of_theorems_is_up_to_date():
    assert (DOCS / "theorems.md").read_text(encoding="utf-8") == theorems_page()


def test_every_citation_is_in_the_bibliography(bound):
    key = bound.cites.split(",")[0]
    assert f"{{{key}," in (DOCS / "references.bib").read_text(encoding="utf-8")


def test_radius_grows_as_delta_shrinks(bound):
    deltas = [0.5, 0.1, 0.05, 0.01]
    radii = [bound.radius(1e6, delta) for delta in deltas]
    assert all(np.diff(radii) > 0)


@pytest.mark.parametrize("delta", [None, 0.05])
def test_bound_is_infinite_exactly_where_an_obstacle_is_named(bound, delta):
    for n in (1, 2, 7, 8, 40, 1e4, 1e9):
        error = bound.mse(n) if delta is None else bound.radius(n, delta)
        assert (error == math.inf) == bool(bound.obstacle(n, delta))


@pytest.mark.parametrize("delta", [None, 0.05])
def test_smallest_n_meets_the_target_and_one_token_less_does_not(bound, delta):
    def error(n: float) -> float:
        return math.sqrt(bound.mse(n)) if delta is None else bound.radius(n, delta)

    for share in (0.9, 0.3):
        eps = share * error(5000)
        n = bound.smallest_n(eps, delta)
        assert error(n) <= eps < error(n - 1)
        assert all(error(n * factor) <= eps for factor in (1.5, 2, 10, 1e3))


def test_smallest_n_beyond_reach_raises(bound):
    with pytest.raises(UnreachableTargetError, match="proves no error of"):
        bound.smallest_n(1e-30)


@pytest.mark.parametrize("n", [0, 0.5, -3, math.nan, math.inf])
def test_length_that_is_none_is_refused(bound, n):
    with pytest.raises(ValueError, match="n must be a number of at least 1; got"):
        bound.mse(n)


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5, math.nan])
def test_delta_outside_the_unit_interval_is_refused(bound, delta):
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        bound.radius(4096, delta)


def test_eps_that_is_not_positive_is_refused(bound):
    with pytest.raises(ValueError, match="eps must be a number above 0; got 0"):
        bound.smallest_n(0)


@pytest.mark.parametrize("bound", BOUNDS[:4], ids=lambda bound: type(bound).__name__)
def test_own_bound_decreases_wherever_it_exists(bound):
    first = bound.exists_beyond()
    lengths = [first * (1 + 1e-3) * 1.1**power for power in range(150)]
    errors = [bound.mse(n) for n in lengths]
    assert all(np.diff(errors) < 0)


def test_recorded_example_is_reproduced():
    exact = float(gaussian_law(4096, 1.0).mean_square_error(RESPONSE, TRACE))
    assert round(exact, 6) == 0.004189
    assert round(OUTPUT.radius(4096, 0.05), 3) == 0.324
    assert round(OUTPUT.mse(4096), 5) == 0.00605


def test_mean_square_bound_is_sharper_than_the_one_by_cauchy_schwarz():
    # the tail by the Cauchy-Schwarz inequality: sqrt(n E|y|^4) exp(-n r^2 / 4 e^kappa)
    cov = 0.5 ** np.abs(np.subtract.outer(range(5), range(5)))
    shift = cov[0]
    fourth = (
        (TRACE + shift @ shift) ** 2 + 2 * np.trace(cov @ cov) + 4 * shift @ cov @ shift
    )

    def cauchy_schwarz(r: float) -> float:
        variance = math.e * OUTPUT.tau_squared / 4096
        tail = math.sqrt(4096 * fourth) * math.exp(-4096 * r**2 / (4 * math.e))
        return variance / (1 - r) ** 2 + tail

    best = minimize_scalar(cauchy_schwarz, bounds=(0, 1), method="bounded")
    assert round(best.fun, 5) == 0.00671
    assert OUTPUT.mse(4096) < best.fun


@pytest.mark.parametrize("logit_variance", [0.0, 0.25, 1.0, 3.0, 5.0])
@pytest.mark.parametrize(("response", "trace"), [(1.0, 1.0), (0.2, 7.0)])
def test_mean_square_bound_exceeds_the_exact_law_and_meets_it(
    logit_variance, response, trace
):
    bound = gaussian_bound(
        logit_variance, trace, response if logit_variance > 0 else 0.0
    )
    lengths = np.geomspace(20, 1e12, 23)
    law = gaussian_law(lengths, logit_variance)
    exact = law.mean_square_error(response if logit_variance > 0 else 0.0, trace)
    ratios = np.array([bound.mse(n) for n in lengths]) / exact
    assert (ratios > 1).all()
    assert ratios[-1] < 1.001


def test_search_finds_the_minimum_that_scipy_finds():
    growth = WeightTail(1.0).second_moment
    for n in (20, 300, 5000):

        def squared(r: float, n: float = n) -> float:
            left = 0.05 - math.exp(-n * r * r / (2 * growth))
            tau = OUTPUT.tau_squared
            return growth * tau / (n * left) / (1 - r) ** 2 if left > 0 else math.inf

        low = math.sqrt(2 * growth * math.log(20) / n)
        best = minimize_scalar(squared, bounds=(low, 1), method="bounded")
        assert OUTPUT.radius(n, 0.05) <= math.sqrt(best.fun) * (1 + 1e-9)
        np.testing.assert_allclose(OUTPUT.radius(n, 0.05) ** 2, best.fun, rtol=1e-5)


def test_minimum_of_a_parabola_is_found():
    assert minimum(lambda x: 3 + (x - 0.7) ** 2, 0.0, 2.0) == 3.0


def test_lower_tail_of_weights_is_the_binomial_one_or_more():
    # W = 2 or 0 with equal probability: kappa = log 2, sums are binomial
    tail = WeightTail(math.log(2))
    for count in (5, 40, 300):
        for r in (0.1, 0.5, 0.9):
            exact = binom.cdf(math.floor(count * (1 - r) / 2), count, 0.5)
            assert exact <= tail.probability(count, r)


def test_nested_drift_is_the_difference_of_variances_to_leading_order():
    for added in (1000, 10**6, 10**9):
        drift = NestedDriftBound(1.0, 6.332, 6.332, 1.332, added)
        n = 1e8
        leading = math.e * 6.332 * (1 / n - 1 / (n + added))
        np.testing.assert_allclose(drift.mse(n), leading, rtol=1e-2)


@pytest.mark.parametrize("logit_variance", [0.25, 1.0, 3.0])
def test_nested_drift_bound_exceeds_the_exact_law_and_meets_it(logit_variance):
    trace, response, ratios = 7.0, 0.2, []
    for n in (200, 3000, 10**5, 10**9):
        spread = trace + response
        bound = NestedDriftBound(logit_variance, spread, spread, response, 3 * n)
        exact = drift_law(n, 3 * n, logit_variance).mean_square(response, trace)
        ratios.append(bound.mse(n) / exact)
    assert min(ratios) > 1
    assert ratios[-1] < 1.01


def test_nested_drift_is_below_the_triangle_and_zero_without_growth():
    triangle = TriangleDriftBound(OUTPUT, 4096)
    nested = NestedDriftBound(1.0, TRACE + RESPONSE, TRACE + RESPONSE, RESPONSE, 4096)
    assert nested.mse(4096) < triangle.mse(4096) / 3
    assert nested.radius(4096, 0.05) < triangle.radius(4096, 0.05) / 2
    still = NestedDriftBound(1.0, TRACE + RESPONSE, TRACE + RESPONSE, RESPONSE, 0)
    assert still.mse(4096) == still.radius(4096, 0.05) == 0


def test_averaging_one_query_changes_nothing_where_its_bound_exists():
    ceiling = LargestTokenCeiling((OUTPUT.omega_squared,))
    average = QueryAveragedBound((1.0,), (OUTPUT,), (ceiling,))
    assert average.mse(4096) == OUTPUT.mse(4096)
    assert OUTPUT.mse(5) == math.inf
    assert average.mse(5) == 5 * OUTPUT.omega_squared


def test_published_bounds_are_the_printed_formulas():
    output = SubGaussianOutputBound(sigma=2.0, factor=3.0, exponent=0.8)
    gradient = SubGaussianGradientBound(sigma=2.0, factor=3.0, exponent=0.8)
    np.testing.assert_allclose(output.mse(100), 3 * 64 * math.log(100) / 100**0.2)
    np.testing.assert_allclose(
        gradient.mse(100), 3 * 4096 * math.log(100) ** 2 / 100**0.2
    )
    assert MomentRateBound(whitened_norm=1.0, constant=1.0).rate == 0.25
    assert UniformRateBound(constant=2.0).mse(400) == 0.01


def test_published_bounds_start_at_two_tokens():
    for theorem in (SubGaussianOutputBound, SubGaussianGradientBound):
        bound = theorem(sigma=1.0, factor=1.0, exponent=1.0)
        assert bound.mse(1) == math.inf
        assert "beyond 1 tokens" in bound.obstacle(1)
        assert math.isfinite(bound.mse(2))


def test_published_rate_of_moments_is_below_the_rate_of_the_output():
    # (sqrt(1 + 4/lambda) - 1)/2 with lambda = H^2: the exponent of the output's error
    for norm in (0.3, 1.0, 2.0, 5.0):
        output = min(1.0, (math.sqrt(1 + 4 / norm**2) - 1) / 2)
        assert 2 * MomentRateBound(whitened_norm=norm, constant=1.0).rate <= output


@pytest.mark.parametrize("name", ["kappa", "tau_squared", "omega_squared"])
@pytest.mark.parametrize("value", [-1.0, math.nan])
def test_moment_that_is_none_is_refused(name, value):
    moments = {"kappa": 1.0, "tau_squared": 1.0, "omega_squared": 1.0} | {name: value}
    with pytest.raises(ValueError, match=f"{name} must be a number of at least 0"):
        OutputBound(**moments)


def test_infinite_moments_leave_no_bound_at_any_length():
    for lost in (OutputBound(math.inf, 1, 1), OutputBound(1, math.inf, 1)):
        assert lost.mse(1e15) == lost.radius(1e15, 0.5) == math.inf
        assert "at any length" in lost.obstacle(1e15, 0.5)


def test_query_law_that_is_none_is_refused():
    ceiling = LargestTokenCeiling((1.0,))
    with pytest.raises(ValueError, match="must have one length; got"):
        QueryAveragedBound((1.0,), (OUTPUT, OUTPUT), (ceiling,))
    with pytest.raises(ValueError, match="sum to 1; got a sum of"):
        QueryAveragedBound((0.7,), (OUTPUT,), (ceiling,))
    with pytest.raises(ValueError, match="at least one moment; got none"):
        LargestTokenCeiling(())


def test_constants_that_are_not_positive_are_refused():
    with pytest.raises(ValueError, match="sigma must be finite and above 0; got"):
        SubGaussianOutputBound(sigma=0.0, factor=1.0, exponent=1.0)
    with pytest.raises(ValueError, match="constant must be finite and above 0; got"):
        UniformRateBound(constant=-1.0)
    with pytest.raises(ValueError, match="whitened_norm must be at least 0"):
        MomentRateBound(whitened_norm=-1.0, constant=1.0)


def test_drift_moments_that_contradict_each_other_are_refused():
    with pytest.raises(ValueError, match="shift_squared must be at most tau_squared"):
        NestedDriftBound(1.0, 1.0, 1.0, 2.0, 10)
