"""The exact law against sampled prompts, attacked at a stated false-alarm rate."""

import numpy as np
import pytest

from largeprompt.laws import gaussian_law
from largeprompt.testing import refutes_mean

PROMPTS = 100_000
CASES = [(2, 1.0), (16, 0.5), (60, 1.0), (30, 3.0)]
LARGEST_NORMAL = 8.0  # the chance that any of the 1e7 normals below exceeds it is 2e-8


def sampled(n: int, scale: float, seed: int):
    """Per prompt: sum of squared weights, and squared error along the tilt."""
    g = np.random.default_rng(seed).standard_normal((PROMPTS, n))
    weights = np.exp(scale * g - (scale * g).max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return (weights**2).sum(axis=1), ((weights * g).sum(axis=1) - scale) ** 2


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "scale"), CASES)
def test_inverse_ess_is_not_refuted_by_sampled_prompts(n, scale, alpha):
    squares, _ = sampled(n, scale, seed=1)
    claim = float(gaussian_law(n, scale**2).inverse_ess)
    assert not refutes_mean(squares, claim, 1.0, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "scale"), CASES)
def test_inverse_ess_five_percent_too_large_is_refuted(n, scale, alpha):
    squares, _ = sampled(n, scale, seed=1)
    claim = 1.05 * float(gaussian_law(n, scale**2).inverse_ess)
    assert refutes_mean(squares, claim, 1.0, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "scale"), CASES)
def test_error_along_the_tilt_is_not_refuted_by_sampled_prompts(n, scale, alpha):
    _, errors = sampled(n, scale, seed=2)
    width = (LARGEST_NORMAL + scale) ** 2  # |sum w g| is at most max |g|
    assert errors.max() <= width
    claim = float(gaussian_law(n, scale**2).parallel_mse)
    assert not refutes_mean(errors, claim, width, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "scale"), CASES)
def test_error_along_the_tilt_doubled_is_refuted(n, scale, alpha):
    _, errors = sampled(n, scale, seed=2)
    width = (LARGEST_NORMAL + scale) ** 2
    claim = 2 * float(gaussian_law(n, scale**2).parallel_mse)
    assert refutes_mean(errors, claim, width, alpha)
