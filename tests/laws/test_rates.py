"""Rates for random queries: known exponents, exact slopes, limits."""

import itertools
import math

import numpy as np
import pytest

from largeprompt.laws.curve import error_curve
from largeprompt.laws.rates import limit_constant, rate_exponents
from largeprompt.laws.status import Status


@pytest.mark.parametrize(
    ("top_eigenvalue", "exponent"),
    [
        (0.3, 1),
        (0.5, 1),
        (1, 0.618),
        (1 / math.sqrt(2), 0.790),
        (1 / math.sqrt(3), 0.908),
    ],
)
def test_exponent_agrees_with_known_digits(top_eigenvalue, exponent):
    assert rate_exponents(top_eigenvalue).mean_square == pytest.approx(
        exponent, abs=5e-4
    )


def test_exponent_is_the_best_exchange_of_rare_queries_for_rare_prompts():
    """Large deviations: minimise over the logit variance v = a^2 log n of the query."""
    a_squared = np.linspace(1e-6, 60, 6_000_001)
    prompt = np.where(
        a_squared < 2 / 3,
        1 - a_squared,
        np.where(a_squared < 2, 1 / (2 * a_squared) - 0.5 + a_squared / 8, 0),
    )
    for top_eigenvalue in (0.2, 0.45, 0.6, 1, 2, 4):
        best = (prompt + a_squared / (2 * top_eigenvalue)).min()
        claim = rate_exponents(top_eigenvalue).mean_square
        assert claim == pytest.approx(best, abs=1e-5)


def test_typical_exponent_is_the_best_exchange_for_a_typical_prompt():
    a = np.linspace(1e-6, 8, 4_000_001)
    prompt = np.where(
        a < math.sqrt(0.5), 1 - a**2, np.maximum(math.sqrt(2) - a, 0) ** 2
    )
    for top_eigenvalue in (0.2, 0.5, 0.6, 1, 2, 4):
        best = (prompt + a**2 / (2 * top_eigenvalue)).min()
        assert rate_exponents(top_eigenvalue).typical == pytest.approx(best, abs=1e-5)


def test_exponents_fall_and_stay_above_zero():
    found = [rate_exponents(x).mean_square for x in np.geomspace(0.5, 1e12, 40)]
    assert all(a > b > 0 for a, b in itertools.pairwise(found))


@pytest.mark.parametrize(
    ("top_eigenvalue", "slope"),
    [(0.25, 1.000), (0.5, 0.944), (1, 0.602), (2, 0.368), (4, 0.236)],
)
def test_exact_slope_near_a_million_million_tokens_agrees_with_known_digits(
    top_eigenvalue, slope
):
    curve = error_curve([1e11, 1e12], [top_eigenvalue], [top_eigenvalue], 1.0)
    assert curve.exponents[0] == pytest.approx(slope, abs=2e-3)


@pytest.mark.parametrize("top_eigenvalue", [1, 2, 4])
def test_exact_slopes_approach_the_conjectured_exponent(top_eigenvalue):
    exponent = rate_exponents(top_eigenvalue).mean_square
    lengths = [1e2, 1e3, 1e8, 1e9, 1e14, 1e15]
    curve = error_curve(lengths, [top_eigenvalue], [top_eigenvalue], 1.0)
    gaps = np.abs(curve.exponents[::2] - exponent)
    assert gaps[0] > gaps[1] > gaps[2]


@pytest.mark.parametrize(
    ("top_eigenvalue", "constant"), [(0.1, 1.2578), (0.25, 2.1213)]
)
def test_limit_constant_agrees_with_known_digits_and_with_the_exact_curve(
    top_eigenvalue, constant
):
    limit = limit_constant([top_eigenvalue], [top_eigenvalue], 1.0)
    curve = error_curve([1e13], [top_eigenvalue], [top_eigenvalue], 1.0)
    assert limit == pytest.approx(constant, abs=5e-5)
    assert 1e13 * curve.mean_square_error[0] == pytest.approx(limit, rel=1e-6)


def test_limit_constant_of_an_anisotropic_head_is_reached_by_the_exact_curve():
    eigenvalues, responses = [0.2, 0.1, 0.03, 0.0], [1.3, 0.2, 2.0, 0.0]
    limit = limit_constant(eigenvalues, responses, 5.0)
    curve = error_curve([1e13], eigenvalues, responses, 5.0)
    assert 1e13 * curve.mean_square_error[0] == pytest.approx(limit, rel=1e-6)


def test_limit_constant_is_infinite_where_the_rate_is_slower():
    assert limit_constant([0.1, 0.5], [1, 1], 1.0) == math.inf


def test_status_says_where_the_proof_ends():
    assert rate_exponents(0.4).status is Status.ASYMPTOTIC
    assert rate_exponents(0.6).status is Status.NUMERICAL
    assert rate_exponents(0.5).logarithmic


@pytest.mark.parametrize("top_eigenvalue", [-1.0, math.nan, math.inf])
def test_rate_refuses_what_is_no_eigenvalue(top_eigenvalue):
    with pytest.raises(ValueError, match="top_eigenvalue must be"):
        rate_exponents(top_eigenvalue)
