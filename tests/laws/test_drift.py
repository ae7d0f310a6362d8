"""The drift of nested prompts against quadrature, limits and drawn prompts."""

import functools
import math

import numpy as np
import pytest

from largeprompt.laws import gaussian_law
from largeprompt.laws.drift import drift_law
from largeprompt.laws.status import Status
from largeprompt.testing import refutes, refutes_mean
from tests.laws.normal_grid import normal_grid, softmax
from tests.laws.test_monte_carlo import LARGEST_NORMAL

PUBLISHED = [  # n, m, s, E sum w w', E (sum w g)(sum w' g)
    (10, 10, 1.0, 0.100260, 0.855936),
    (50, 150, 2.0, 0.0556174, 3.07662),
    (100, 900, 1.5, 0.00690232, 2.10875),
]


@pytest.mark.parametrize(("n", "extra", "scale", "weights", "outputs"), PUBLISHED)
def test_cross_moments_of_nested_prompts_agree_with_known_digits(
    n, extra, scale, weights, outputs
):
    drift = drift_law(n, extra, scale**2)
    law = gaussian_law([n, n + extra], scale**2)
    squares = (
        law.parallel_mse + 2 * scale**2 * law.shrinkage - scale**2
    )  # E (sum w g)^2
    assert (law.inverse_ess.sum() - drift.across) / 2 == pytest.approx(
        weights, rel=5e-6
    )
    assert (squares.sum() - drift.along) / 2 == pytest.approx(outputs, rel=2e-6)


@pytest.mark.parametrize(("n", "extra"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("scale", [0.1, 1.0, 2.0])
def test_drift_of_two_or_three_tokens_agrees_with_quadrature(n, extra, scale):
    g, probability = normal_grid(n + extra)
    after, before = softmax(scale * g), np.zeros_like(g)
    before[:, :n] = softmax(scale * g[:, :n])
    step = after - before
    drift = drift_law(n, extra, scale**2)
    assert drift.across == pytest.approx(probability @ (step**2).sum(1), rel=1e-11)
    assert drift.along == pytest.approx(probability @ (step * g).sum(1) ** 2, rel=1e-11)


@pytest.mark.parametrize(("n", "extra"), [(1, 1), (10, 3), (7, 10**6)])
def test_drift_of_plain_averages_is_elementary(n, extra):
    drift = drift_law(n, extra, 0.0)
    assert drift.across == pytest.approx(extra / (n * (n + extra)), rel=1e-12)
    assert drift.along == drift.across


@pytest.mark.parametrize("logit_variance", [0.1, 1.0, 4.0, 9.0])
def test_drift_to_an_endless_prompt_is_the_error_of_the_short_one(logit_variance):
    drift, law = drift_law(20, 1e15, logit_variance), gaussian_law(20, logit_variance)
    assert drift.across == pytest.approx(float(law.inverse_ess), rel=1e-9)
    assert drift.along == pytest.approx(float(law.parallel_mse), rel=1e-9)


@pytest.mark.parametrize("logit_variance", [0.25, 1.0, 3.0])
def test_one_token_added_to_a_huge_prompt_does_not_cancel(logit_variance):
    n = 1e12
    drift = drift_law(n, 1, logit_variance)
    square = math.exp(logit_variance) / n**2  # of the new token's weight
    assert drift.across == pytest.approx(square, rel=1e-7)
    assert drift.along == pytest.approx(square * (1 + logit_variance), rel=1e-7)


@functools.cache
def drawn_drift(n: int, extra: int, scale: float, prompts: int):
    """Per pair of prompts: mean square across the tilt, and step along it."""
    g = np.random.default_rng(3).standard_normal((prompts, n + extra))
    after, before = softmax(scale * g), softmax(scale * g[:, :n])
    step = after.copy()
    step[:, :n] -= before
    return (step**2).sum(1), (step * g).sum(1)


CASES = [(6, 4, 1.0), (10, 1, 0.5), (3, 17, 2.0)]
PAIRS = 300_000  # the chance of any normal beyond LARGEST_NORMAL is 8e-9


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "extra", "scale"), CASES)
def test_drift_across_the_tilt_is_not_refuted_by_drawn_prompts(n, extra, scale, alpha):
    across, _ = drawn_drift(n, extra, scale, PAIRS)
    claim = drift_law(n, extra, scale**2).across
    assert not refutes_mean(across, claim, 2.0, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "extra", "scale"), CASES)
def test_drift_across_the_tilt_ten_percent_too_large_is_refuted(n, extra, scale, alpha):
    across, _ = drawn_drift(n, extra, scale, PAIRS)
    claim = 1.1 * drift_law(n, extra, scale**2).across
    assert refutes_mean(across, claim, 2.0, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "extra", "scale"), CASES)
def test_drift_along_the_tilt_is_not_refuted_by_drawn_prompts(n, extra, scale, alpha):
    _, along = drawn_drift(n, extra, scale, PAIRS)
    claim = drift_law(n, extra, scale**2).along
    assert not refutes_mean(along**2, claim, (2 * LARGEST_NORMAL) ** 2, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "extra", "scale"), [(6, 4, 1.0), (3, 17, 2.0)])
def test_drift_along_the_tilt_fifty_percent_too_large_is_refuted(
    n, extra, scale, alpha
):
    _, along = drawn_drift(n, extra, scale, PAIRS)
    claim = 1.5 * drift_law(n, extra, scale**2).along
    assert refutes_mean(along**2, claim, (2 * LARGEST_NORMAL) ** 2, alpha)


@pytest.mark.statistical
def test_probability_of_a_larger_drift_is_not_refuted(alpha):
    n, extra, scale, delta, pairs = 20, 60, 1.0, 0.05, 20_000
    _, along = drawn_drift(n, extra, scale, pairs)
    radius = drift_law(n, extra, scale**2).radius(1.0, 1.0, delta)  # d = V = G = 1
    assert not refutes(int((np.abs(along) >= radius).sum()), pairs, delta, alpha)


@pytest.mark.statistical
def test_a_third_of_the_radius_of_the_drift_is_refuted(alpha):
    n, extra, scale, delta, pairs = 20, 60, 1.0, 0.05, 20_000
    _, along = drawn_drift(n, extra, scale, pairs)
    radius = drift_law(n, extra, scale**2).radius(1.0, 1.0, delta) / 3
    assert refutes(int((np.abs(along) >= radius).sum()), pairs, delta, alpha)


def test_drift_law_says_that_it_is_exact():
    assert drift_law(5, 5, 1.0).status is Status.EXACT


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0, 1, 1), "n"), ((1, 0, 1), "extra"), ((1, 1, -1), "logit_variance")],
)
def test_drift_law_refuses_what_is_out_of_range(arguments, name):
    with pytest.raises(ValueError, match=f"^{name} must be a number from"):
        drift_law(*arguments)


@pytest.mark.parametrize("delta", [0, 1, math.nan])
def test_radius_refuses_a_delta_that_is_no_probability(delta):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        drift_law(5, 5, 1.0).radius(1.0, 1.0, delta)
