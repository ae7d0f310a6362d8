import math

import numpy as np
import pytest
from scipy import special

from largeprompt.audit.logit_shape import (
    NORMAL_QUANTILES,
    PROXY_TILTS,
    THRESHOLDS,
    gaussian_tail_exponent,
    log_means,
    proxy_ratio,
    quantiles,
    shares_above,
    tail_exponents,
)
from largeprompt.laws.diagnostics import proxy_variance, tail_exponent

N = 700


def standardised(rows):
    rows = rows - rows.mean(-1, keepdims=True)
    return rows / rows.std(-1, keepdims=True)


@pytest.fixture(scope="module")
def samples():
    draw = np.random.default_rng(3)
    kinds = (draw.normal, draw.laplace, draw.uniform, draw.standard_exponential)
    return standardised(np.stack([kind(size=N) for kind in kinds]))


def test_log_means_are_those_of_one_exponential_each(samples):
    step = np.array([0.5, -0.5, 3.0, -3.0])
    found = log_means(samples, step, 5)
    for row, (x, t) in enumerate(zip(samples, step, strict=True)):
        for j in range(1, 6):
            expected = np.log(np.exp(j * t * x).mean())
            np.testing.assert_allclose(found[row, j - 1], expected, rtol=1e-12)


def test_proxy_ratio_is_the_largest_over_the_reach_of_the_tokens(samples):
    reach = math.sqrt(2 * math.log(N))
    tilts = reach * np.linspace(-1, 1, 2 * PROXY_TILTS + 1)
    tilts = tilts[tilts != 0]
    for x, found in zip(samples, proxy_ratio(samples), strict=True):
        growth = np.log(np.exp(np.outer(tilts, x)).mean(-1))
        np.testing.assert_allclose(found, max(1, (2 * growth / tilts**2).max()))
        refined = proxy_variance(x).ratio  # four times the tilts, and between them
        assert 0.98 * refined <= found <= refined * (1 + 1e-12)


def test_tail_exponents_are_those_of_one_fit_each(samples):
    for x, found in zip(samples, tail_exponents(samples), strict=True):
        fit = tail_exponent(x)
        np.testing.assert_allclose(found, fit.exponent, rtol=1e-6)
        gaussian = gaussian_tail_exponent(N)
        np.testing.assert_allclose(gaussian, fit.gaussian_exponent, rtol=1e-6)


def test_shape_has_no_number_where_logits_do_not_vary_or_are_few():
    flat = np.zeros((2, N))
    assert np.isnan(proxy_ratio(flat)).all()
    assert np.isnan(tail_exponents(flat)).all()
    assert np.isnan(tail_exponents(np.arange(19.0)[None])).all()
    assert math.isnan(gaussian_tail_exponent(19))


def test_quantiles_and_shares_are_those_of_numpy(samples):
    ordered = np.sort(samples, -1)
    levels = special.ndtr(NORMAL_QUANTILES)
    expected = np.quantile(samples, levels, axis=-1, method="hazen").T
    np.testing.assert_allclose(quantiles(ordered), expected)
    shares = (samples[:, None] > THRESHOLDS[:, None]).mean(-1)
    np.testing.assert_allclose(shares_above(ordered), shares)
