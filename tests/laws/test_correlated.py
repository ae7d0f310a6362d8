"""Correlated tokens: known shares, exact finite sums, and refusals."""

import math

import numpy as np
import pytest

from largeprompt.laws.asymptotic import DeltaMethod
from largeprompt.laws.correlated import geometric_autocorrelation, long_run
from largeprompt.laws.status import Status


def test_three_equivalent_numbers_of_tokens_agree_with_known_digits():
    sums = long_run(0.825, geometric_autocorrelation(0.7))
    assert sums.normaliser_share == pytest.approx(0.217, abs=5e-4)
    assert sums.across_share == pytest.approx(0.255, abs=5e-4)
    assert sums.along_share == pytest.approx(0.312, abs=5e-4)


@pytest.mark.parametrize("logit_variance", [0.0, 0.5, 3.0])
def test_independent_tokens_count_in_full_and_obey_the_delta_method(logit_variance):
    sums = long_run(logit_variance, [])
    shares = (sums.normaliser_share, sums.across_share, sums.along_share)
    assert shares == pytest.approx((1, 1, 1))
    delta = DeltaMethod(100, logit_variance, spread=2.0, shift=0.3)
    assert sums.mean_square_error(100, 0.3, 2.0) == pytest.approx(
        delta.mean_square_error
    )


@pytest.mark.parametrize("correlation", [-0.6, 0.3, 0.9])
def test_plain_averages_have_the_textbook_variance_of_an_autoregression(correlation):
    sums = long_run(0.0, geometric_autocorrelation(correlation))
    exact = (1 + correlation) / (1 - correlation)
    assert sums.across == pytest.approx(exact, rel=1e-12)
    assert sums.across_share == pytest.approx(1 / exact, rel=1e-12)


def test_variance_of_the_normaliser_is_the_limit_of_its_exact_finite_sum():
    rho, variance, n = np.array([0.5, 0.2]), 1.3, 100_000
    lags = np.concatenate([[1.0], rho])
    pairs = np.array([n, 2 * (n - 1), 2 * (n - 2)])
    exact = pairs @ np.expm1(variance * lags) / n**2  # variance of the mean mass
    sums = long_run(variance, rho)
    assert sums.normaliser * variance / n == pytest.approx(exact, rel=1e-4)


def test_long_run_says_that_it_is_asymptotic():
    assert long_run(1.0, [0.2]).status is Status.ASYMPTOTIC


@pytest.mark.parametrize("correlation", [1.0, -1.0, 1.5, math.nan])
def test_correlations_of_modulus_one_are_refused(correlation):
    with pytest.raises(ValueError, match="strictly between -1 and 1"):
        geometric_autocorrelation(correlation)
    with pytest.raises(ValueError, match="strictly between -1 and 1"):
        long_run(1.0, [0.1, correlation])


def test_a_correlation_that_fades_too_slowly_is_refused():
    with pytest.raises(ValueError, match="must fade within"):
        geometric_autocorrelation(1 - 1e-9)


def test_a_sequence_that_is_no_autocorrelation_is_refused():
    with pytest.raises(ValueError, match="spectral density"):
        long_run(1.0, [0.9])
    with pytest.raises(ValueError, match="must be a vector"):
        long_run(1.0, [[0.1]])
    with pytest.raises(ValueError, match="logit_variance must be"):
        long_run(-1.0, [0.1])
