"""The query-averaged curve against direct quadrature over queries."""

import math
import time

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from largeprompt.laws import gaussian_law
from largeprompt.laws.curve import error_curve, law_over_lengths
from tests.laws.normal_grid import normal_grid


@pytest.mark.parametrize("top_eigenvalue", [0.05, 0.5, 1.0])
def test_curve_of_one_direction_agrees_with_quadrature_over_the_query(top_eigenvalue):
    def weighted(query, n):
        law = gaussian_law(n, top_eigenvalue * query**2)
        return 2 * norm.pdf(query) * float(law.parallel_mse)

    lengths = [3, 100]
    curve = error_curve(lengths, [top_eigenvalue], [top_eigenvalue], 1.0)
    for n, found in zip(lengths, curve.mean_square_error, strict=True):
        exact, _ = quad(weighted, 0, 12, args=(n,), epsabs=0, epsrel=1e-9, limit=60)
        assert found == pytest.approx(exact, rel=1e-8)


def test_curve_of_an_anisotropic_head_agrees_with_a_grid_of_queries():
    eigenvalues, responses = np.array([0.9, 0.2]), np.array([0.1, 3.0])
    queries, probability = normal_grid(2)
    kept = probability > 1e-14
    queries, probability = queries[kept], probability[kept]
    law = gaussian_law(50, queries**2 @ eigenvalues)
    exact = probability @ law.mean_square_error(queries**2 @ responses, 2.5)
    curve = error_curve(50, eigenvalues, responses, 2.5)
    assert curve.mean_square_error[0] == pytest.approx(exact, rel=1e-9)


def test_curve_does_not_depend_on_how_a_repeated_eigenvalue_is_split():
    lengths = np.geomspace(10, 1e9, 7)
    whole = error_curve(lengths, [0.7, 0.7, 0.7], [3.0, 0.0, 0.0], 1.0)
    split = error_curve(lengths, [0.7, 0.7, 0.7], [0.5, 1.5, 1.0], 1.0)
    np.testing.assert_allclose(whole.mean_square_error, split.mean_square_error, 1e-12)


def test_curve_of_a_head_without_logits_is_that_of_the_average():
    curve = error_curve([4, 10], [0.0, 0.0], [0.0, 0.0], 3.0)
    np.testing.assert_allclose(curve.mean_square_error, [0.75, 0.3])


def test_curve_of_fifty_lengths_takes_less_than_two_seconds():
    spectrum = np.geomspace(1, 1e-3, 64)
    start = time.process_time()
    curve = error_curve(np.geomspace(10, 1e12, 50), spectrum, spectrum, 64.0)
    assert time.process_time() - start < 2
    assert (np.diff(curve.mean_square_error) < 0).all()


@pytest.mark.parametrize("logit_variance", [1e-4, 0.3, 7.0, 100.0, 400.0])
def test_law_over_lengths_is_the_exact_law(logit_variance):
    lengths = np.array([1.0, 2.0, 37.0, 1e6, 1e15])
    inverse_ess, excess = law_over_lengths(lengths, logit_variance)
    law = gaussian_law(lengths, logit_variance)
    np.testing.assert_allclose(inverse_ess, law.inverse_ess, rtol=1e-11)
    np.testing.assert_allclose(excess, law.parallel_excess, rtol=1e-11, atol=1e-30)


@pytest.mark.parametrize("logit_variance", [900.0, 4000.0])
def test_law_over_lengths_holds_beyond_the_range_of_the_table(logit_variance):
    inverse_ess, _ = law_over_lengths(np.array([2.0]), logit_variance)
    scale = math.sqrt(2 * logit_variance)  # of the difference of two logits

    def lost(g):
        return norm.pdf(g) / (2 * math.cosh(scale * g / 2) ** 2)

    missing, _ = quad(lost, -40 / scale, 40 / scale, epsabs=0, epsrel=1e-12)
    assert inverse_ess[0] == pytest.approx(1 - missing, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], [1.0], [1.0], 1.0), "n must be"),
        (([10], [-1.0], [1.0], 1.0), "eigenvalues must be"),
        (([10], [1.0, 2.0], [1.0], 1.0), "two vectors of one length"),
        (([10], [1.0], [math.nan], 1.0), "responses must be"),
        (([10], [1.0], [1.0], -1.0), "variance must be"),
        (([10], [500.0], [1.0], 1.0), "logit variance must stay below"),
    ],
)
def test_curve_refuses_what_is_out_of_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        error_curve(*arguments)
