"""Diagnostics of data against laws whose cumulants and tails are known."""

import math

import numpy as np
import pytest
from scipy.stats import gamma

from largeprompt.laws.diagnostics import (
    directional_proxy_variances,
    log_mgf_band,
    log_mgf_limits,
    proxy_variance,
    reach,
    tail_exponent,
    tilt_ess,
    worst_direction,
)
from largeprompt.testing import refutes

N, TRIALS = 1000, 1000
DEVIATIONS = [0.5, 1.0, 1.3, 1.8, 2.5]  # tilts in units of 1 / sigma
LAWS = {  # draws, log-MGF, standard deviation
    "gaussian": (lambda g: g.standard_normal(N), lambda t: t**2 / 2, 1.0),
    "uniform": (
        lambda g: g.uniform(-1, 1, N),
        lambda t: math.log(math.sinh(t) / t),
        1 / math.sqrt(3),
    ),
    "rademacher": (
        lambda g: g.choice([-1.0, 1.0], N),
        lambda t: math.log(math.cosh(t)),
        1.0,
    ),
    "laplace": (
        lambda g: g.laplace(size=N),
        lambda t: -math.log(1 - t**2) if t < 1 else math.inf,
        math.sqrt(2),
    ),
}
SLACK = 0.02  # the limits are asymptotic: at n = 1000 a 95% interval misses up to 7%


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def misses(law: str, level: float, narrowed: float = 1.0) -> np.ndarray:
    """How often the limits of the log-MGF exclude the truth, tilt by tilt."""
    draw, log_mgf, deviation = LAWS[law]
    tilts = np.array(DEVIATIONS) / deviation
    truth = np.array([log_mgf(t) for t in tilts])
    g, count = generator(11), np.zeros(len(tilts), dtype=int)
    for _ in range(TRIALS):
        low, high = log_mgf_limits(draw(g), tilts, level)
        with np.errstate(invalid="ignore"):
            middle = np.where(np.isfinite(high), (low + high) / 2, low)
            low = middle + narrowed * (low - middle)
            high = np.where(
                np.isfinite(high), middle + narrowed * (high - middle), high
            )
        count += (truth < low) | (truth > high)
    return count


@pytest.mark.statistical
@pytest.mark.parametrize("law", list(LAWS))
def test_log_mgf_limits_enclose_the_truth_as_often_as_they_say(law, alpha):
    for count in misses(law, 0.95):
        assert not refutes(count, TRIALS, 0.05 + SLACK, alpha / len(DEVIATIONS))


@pytest.mark.statistical
@pytest.mark.parametrize("law", list(LAWS))
def test_log_mgf_limits_narrowed_by_half_are_refuted(law, alpha):
    count = misses(law, 0.95, narrowed=0.5)[0]
    assert refutes(count, TRIALS, 0.05 + SLACK, alpha)


def excess_misses(draw, excess, tilts, narrowed: float = 1.0) -> np.ndarray:
    g, count = generator(12), np.zeros(len(tilts), dtype=int)
    truth = np.array([excess(t) for t in tilts])
    for _ in range(TRIALS):
        band = log_mgf_band(draw(g), tilts)
        low = band.excess + narrowed * (band.excess_low - band.excess)
        high = band.excess + narrowed * (band.excess_high - band.excess)
        count += (truth < low) | (truth > high)
    return count


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "excess"),
    [
        (lambda g: g.standard_normal(2000), lambda t: 0.0),
        (
            lambda g: g.uniform(-1, 1, 2000),
            lambda t: math.log(math.sinh(t) / t) - t**2 / 6,
        ),
    ],
    ids=["gaussian", "uniform"],
)
def test_excess_limits_enclose_the_truth_and_half_of_them_do_not(draw, excess, alpha):
    tilts = np.array([0.5, 0.9, 1.3])
    for count in excess_misses(draw, excess, tilts):
        assert not refutes(count, TRIALS, 0.05 + SLACK, alpha / 4)
    lie = excess_misses(draw, excess, tilts, narrowed=0.5)[0]
    assert refutes(lie, TRIALS, 0.05 + SLACK, alpha / 4)


def test_departure_from_gaussian_is_found_in_laplace_and_uniform_draws():
    g, tilts = generator(5), np.linspace(0.3, 1.0, 5)
    assert log_mgf_band(g.laplace(size=9000) / math.sqrt(2), tilts).departs.any()
    assert log_mgf_band(g.uniform(-1, 1, 9000) * math.sqrt(3), tilts).departs.any()


def test_beyond_the_trusted_tilts_there_is_no_upper_limit():
    sample, tilts = generator(6).standard_normal(N), np.array([0.5, 2.0, 5.0])
    low, high = log_mgf_limits(sample, tilts)
    band = log_mgf_band(sample, tilts)
    assert band.trusted.tolist() == [True, False, False]
    assert band.visible.tolist() == [True, True, False]
    assert np.isfinite(high).tolist() == [True, False, False]
    assert np.isfinite(low).all()
    assert not band.departs[1:].any()


@pytest.mark.statistical
def test_lower_limit_beyond_the_trusted_tilts_holds_for_any_law(alpha):
    # Pareto draws, log-MGF of a negative tilt of their logarithm: E x^2 = 3, tilt 2
    g, violations, trials, level = generator(7), 0, 3000, 0.8
    for _ in range(trials):
        low, high = log_mgf_limits(g.exponential(1 / 3, 40), [2.0], level)
        assert high[0] == math.inf
        violations += low[0] > math.log(3)
    assert not refutes(violations, trials, 1 - level, alpha)


def test_ess_of_a_tilt_is_the_definition():
    sample = generator(8).standard_normal(37)
    masses = np.exp(1.3 * sample)
    expected = masses.sum() ** 2 / (masses**2).sum()
    np.testing.assert_allclose(tilt_ess(sample, 1.3), expected)
    np.testing.assert_allclose(tilt_ess(sample, [0.0, 1e4]), [37, 1])


def test_reach_is_the_freezing_tilt():
    assert reach(1) == 0
    np.testing.assert_allclose(reach(4096), math.sqrt(2 * math.log(4096)))


@pytest.mark.parametrize("p", [0.02, 0.1, 0.3])
def test_proxy_variance_of_a_coin_is_the_one_of_kearns_and_saul(p):
    heads = round(10_000 * p)
    coin = proxy_variance(np.repeat([1.0, 0.0], [heads, 10_000 - heads]))
    known = (1 - 2 * p) / (2 * math.log((1 - p) / p))
    np.testing.assert_allclose(coin.value, known, rtol=1e-6)
    np.testing.assert_allclose(coin.variance, p * (1 - p))
    assert not coin.at_edge


def test_proxy_variance_of_signs_is_their_variance():
    signs = proxy_variance(np.repeat([1.0, -1.0], 500))
    np.testing.assert_allclose(signs.ratio, 1.0, rtol=1e-4)


def test_proxy_variance_scales_and_reflects_and_ignores_shifts():
    sample = generator(9).gamma(2.0, size=500)
    value = proxy_variance(sample).value
    np.testing.assert_allclose(proxy_variance(3 * sample).value, 9 * value)
    np.testing.assert_allclose(proxy_variance(5 - sample).value, value)


def test_proxy_variance_of_heavy_tails_grows_with_the_sample():
    def quantiles(n: int) -> np.ndarray:
        sizes = ((np.arange(n) + 0.5) / n) ** (-1 / 3)
        return np.concatenate([sizes, -sizes])

    ratios = [proxy_variance(quantiles(n)).ratio for n in (100, 1000, 10_000)]
    assert all(np.diff(ratios) > 1)


def test_directional_proxy_variances_are_those_of_the_projections():
    tokens = generator(13).laplace(size=(300, 3))
    found = directional_proxy_variances(tokens, [[2.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    assert found[0].value == proxy_variance(tokens[:, 0]).value
    diagonal = proxy_variance((tokens[:, 1] + tokens[:, 2]) / math.sqrt(2))
    np.testing.assert_allclose(found[1].value, diagonal.value)


def test_worst_direction_is_the_skewed_axis_and_is_measured_again():
    g = generator(14)
    tokens = g.uniform(-1, 1, (6000, 5)) * math.sqrt(3)
    tokens[:, 3] = (g.random(6000) < 0.05) / math.sqrt(0.05 * 0.95)
    rotation = np.linalg.qr(g.standard_normal((5, 5)))[0]
    worst = worst_direction(tokens @ rotation.T)
    assert abs(worst.direction @ rotation[:, 3]) > 0.95
    known = 0.9 / (2 * math.log(19)) / (0.05 * 0.95)
    assert abs(worst.held_out.value / known - 1) < 0.1
    axes = directional_proxy_variances((tokens @ rotation.T)[::2], rotation.T)
    assert worst.found.value >= max(axis.value for axis in axes)


@pytest.mark.statistical
@pytest.mark.parametrize("alpha_of_law", [0.6, 1.0, 2.0, 4.0])
def test_tail_limits_enclose_the_exponent_of_weibull_tails(alpha_of_law, alpha):
    g, count, halved = generator(15), 0, 0
    for _ in range(TRIALS):
        sample = g.weibull(alpha_of_law, 800) * np.where(np.arange(800) % 2, 1, -1)
        fit = tail_exponent(sample)
        half = (fit.high - fit.low) / 4
        count += not fit.low <= alpha_of_law <= fit.high
        halved += abs(fit.exponent - alpha_of_law) > half
    assert not refutes(count, TRIALS, 0.05 + SLACK, alpha / 2)
    assert refutes(halved, TRIALS, 0.05 + SLACK, alpha / 2)


@pytest.mark.statistical
def test_tail_limits_enclose_the_gaussian_exponent_at_their_depth(alpha):
    g, count = generator(16), 0
    for _ in range(TRIALS):
        fit = tail_exponent(g.standard_normal(800))
        count += not fit.low <= fit.gaussian_exponent <= fit.high
    assert not refutes(count, TRIALS, 0.05 + SLACK, alpha)


def test_tail_exponent_of_bounded_signs_is_infinite():
    assert tail_exponent(np.repeat([1.0, -1.0, 0.0], 100)).exponent == math.inf


@pytest.mark.statistical
def test_hill_index_of_a_power_law_is_its_index(alpha):
    # the sum of log excesses of a Pareto law is gamma-distributed, its index the scale
    sizes = generator(17).pareto(2.0, 100_000) + 1
    fit = tail_exponent(sizes * np.where(np.arange(100_000) % 2, 1, -1), kept=2000)
    total = fit.kept * fit.hill_index
    assert gamma.cdf(total, fit.kept, scale=0.5) > alpha / 3
    assert gamma.sf(total, fit.kept, scale=0.5) > alpha / 3
    assert gamma.sf(total, fit.kept, scale=0.4) < alpha / 3
    assert fit.high < 1


@pytest.mark.parametrize(
    ("sample", "match"),
    [
        ([1.0], "at least two draws; got shape"),
        ([[1.0, 2.0], [3.0, 4.0]], "needs 1 dimensions"),
        ([1.0, math.nan], "must be finite; got NaN"),
        ([2.0, 2.0, 2.0], "two different values; got one"),
    ],
)
def test_sample_that_is_none_is_refused(sample, match):
    for diagnose in (proxy_variance, tail_exponent, lambda x: log_mgf_band(x, [1.0])):
        with pytest.raises(ValueError, match=match):
            diagnose(sample)


def test_arguments_outside_their_range_are_refused():
    sample = generator(18).standard_normal(100)
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        log_mgf_limits(sample, [1.0], level=1.0)
    with pytest.raises(ValueError, match="kept must be from 5 to 25; got 26"):
        tail_exponent(sample, kept=26)
    with pytest.raises(ValueError, match="at least 20 draws; got 19"):
        tail_exponent(sample[:19])
    with pytest.raises(ValueError, match=r"directions must have shape \(m, 2\)"):
        directional_proxy_variances(sample.reshape(50, 2), [[1.0, 0.0, 0.0]])
    with pytest.raises(ValueError, match="not zero; got one that is"):
        directional_proxy_variances(sample.reshape(50, 2), [[0.0, 0.0]])
    with pytest.raises(ValueError, match="at least 8 draws; got 7"):
        worst_direction(sample[:14].reshape(7, 2))
    with pytest.raises(ValueError, match="must differ from the median"):
        tail_exponent(np.repeat([0.0, 1.0], [99, 1]))
