"""The exact law against an independent high-precision route, identities, and limits."""

import json
import math
import pathlib

import numpy as np
import pytest

from largeprompt.laws import gaussian_law
from largeprompt.laws.laplace import STEP, laplace_moments, outer_grid
from tests.laws import mpmath_law

ROWS = json.loads(
    pathlib.Path(__file__).with_name("mpmath_law.json").read_text(encoding="utf-8")
)
ACCURACY = 1e-10  # what is promised of phi and psi

PUBLISHED = [  # twelve digits from an independent computation
    (2, 1, 0.636838153969, 1.0728294599),
    (16, 0.25, 0.0781976092383, 0.0956985455774),
    (100, 1, 0.0255384799116, 0.0465883814698),
    (1000, 2, 0.00691938986478, 0.0186135136570),
    (4096, 9, 0.0786242416569, 0.194545203550),
    (1e6, 16, 0.0433411683585, 0.124786186069),
    (1e12, 25, 0.00133249993768, 0.00962012039743),
    (1e15, 9, 8.10308286434e-12, 8.1030799960e-11),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['n']:g}-{r['logit_variance']}")
def test_law_agrees_with_mpmath(row):
    law = gaussian_law(row["n"], row["logit_variance"])
    assert law.inverse_ess == pytest.approx(float(row["phi"]), rel=ACCURACY)
    assert law.parallel_mse == pytest.approx(float(row["psi"]), rel=ACCURACY)


@pytest.mark.parametrize(("n", "logit_variance"), [(2.5, 0.3), (37, 0.09), (11, 1.0)])
def test_law_agrees_with_mpmath_run_now(n, logit_variance):
    phi, psi = mpmath_law.law(n, logit_variance, digits=20)
    law = gaussian_law(n, logit_variance)
    assert law.inverse_ess == pytest.approx(float(phi), rel=ACCURACY)
    assert law.parallel_mse == pytest.approx(float(psi), rel=ACCURACY)


@pytest.mark.parametrize(("n", "logit_variance", "phi", "psi"), PUBLISHED)
def test_law_agrees_with_twelve_known_digits(n, logit_variance, phi, psi):
    law = gaussian_law(n, logit_variance)
    assert law.inverse_ess == pytest.approx(phi, rel=2e-11 if n < 1e15 else 1e-10)
    assert law.parallel_mse == pytest.approx(psi, rel=1e-10)


@pytest.mark.parametrize("n", [1.5, 2, 3, 10, 1e3, 1e6, 1e9, 1e15])
@pytest.mark.parametrize("scale", [1e-6, 0.01, 0.3, 0.285714, 1, 3, 5, 8, 20])
def test_weights_sum_to_one(n, scale):
    moments = laplace_moments(outer_grid(n, scale), scale)
    total = n * STEP * np.exp((n - 1) * moments.log_transform) @ moments.first
    assert total == pytest.approx(1, rel=1e-11)


@pytest.mark.parametrize("n", [2, 7, 1e3, 1e6])
@pytest.mark.parametrize("logit_variance", [0.04, 1.0, 9.0, 100.0])
def test_expected_mean_is_the_limit_shrunk_by_the_inverse_ess(n, logit_variance):
    r"""$E \sum w_i g_i$ by its own integral, $n \int E[g y e^{-y}] L^{n-1}$."""
    scale = math.sqrt(logit_variance)
    moments = laplace_moments(outer_grid(n, scale), scale)
    mean = (
        scale
        * n
        * STEP
        * np.exp((n - 1) * moments.log_transform)
        @ (moments.first - moments.second)
    )
    assert mean == pytest.approx(
        scale * gaussian_law(n, logit_variance).shrinkage, rel=1e-9
    )


@pytest.mark.parametrize("logit_variance", [0, 1e-12, 1.0, 16.0, 400.0])
def test_one_token_is_its_own_output(logit_variance):
    law = gaussian_law(1, logit_variance)
    assert law.inverse_ess == 1
    assert law.parallel_mse == 1 + logit_variance


@pytest.mark.parametrize("n", [1, 2, 17, 1e4, 1e15])
def test_a_zero_tilt_averages_uniformly(n):
    law = gaussian_law(n, 0)
    assert law.inverse_ess == 1 / n
    assert law.parallel_mse == pytest.approx(1 / n, rel=1e-14)
    assert law.parallel_excess == pytest.approx(1 / n, rel=1e-12)
    assert law.inverse_ess_slope == pytest.approx(2 * (n - 1) / n**2, rel=1e-14)


@pytest.mark.parametrize("n", [2, 17, 1e4, 1e15])
def test_a_small_tilt_joins_the_zero_tilt_smoothly(n):
    small, zero = gaussian_law(n, 1e-12), gaussian_law(n, 0)
    for field in (
        "inverse_ess",
        "parallel_mse",
        "parallel_excess",
        "inverse_ess_slope",
    ):
        assert getattr(small, field) == pytest.approx(getattr(zero, field), rel=1e-10)


def test_a_few_tokens_under_a_strong_tilt_are_frozen():
    inverse_ess = gaussian_law(3, [25, 100, 400]).inverse_ess
    assert (np.diff(inverse_ess) > 0).all()
    # two of three logits are within 1 of each other with probability about 1/s
    assert ((1 - inverse_ess) * np.sqrt([25, 100, 400]) < 1).all()


@pytest.mark.parametrize("n", [2, 30, 1e5, 1e10])
@pytest.mark.parametrize("logit_variance", [0.2, 2.0, 20.0])
def test_slope_is_the_derivative_of_the_inverse_ess(n, logit_variance):
    scale = math.sqrt(logit_variance)
    h = 1e-3 * scale
    points = gaussian_law(n, (scale + h * np.array([-2, -1, 1, 2])) ** 2).inverse_ess
    derivative = points @ np.array([1, -8, 8, -1]) / (12 * h)
    slope = gaussian_law(n, logit_variance).inverse_ess_slope * scale
    assert slope == pytest.approx(derivative, rel=1e-7)


def test_arrays_broadcast():
    law = gaussian_law(np.array([[10], [100]]), [0.5, 1.0, 2.0])
    assert law.inverse_ess.shape == (2, 3)
    assert law.parallel_mse[1, 2] == gaussian_law(100, 2.0).parallel_mse


@pytest.mark.parametrize("n", [0, 0.5, -3, math.nan, math.inf, 2e15])
def test_a_length_out_of_range_is_refused(n):
    with pytest.raises(ValueError, match="n must be a number from 1 to 1e"):
        gaussian_law(n, 1.0)


@pytest.mark.parametrize("logit_variance", [-1e-9, 401, math.nan, math.inf])
def test_a_variance_out_of_range_is_refused(logit_variance):
    with pytest.raises(ValueError, match="logit_variance must be a number from 0"):
        gaussian_law(10, logit_variance)
