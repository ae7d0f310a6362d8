"""Running integrals against closed forms."""

import math

import numpy as np
import pytest

from largeprompt.laws.cumulative import panel_weights, running_integral


def test_panel_weights_integrate_polynomials_of_degree_nine():
    nodes = np.arange(-4.5, 5)
    for power in range(10):
        exact = (0.5 ** (power + 1) - (-0.5) ** (power + 1)) / (power + 1)
        rounding = float(1e-12 * np.abs(panel_weights()) @ np.abs(nodes) ** power)
        assert panel_weights() @ nodes**power == pytest.approx(exact, abs=rounding)


def test_running_integral_of_a_normal_density_is_its_distribution_function():
    x = 0.05 * np.arange(-400, 401)
    integral = running_integral(np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi), 0.05)
    exact = [math.erfc(-value / math.sqrt(2)) / 2 for value in x]
    middle = np.abs(x) < 3
    np.testing.assert_allclose(integral[middle], np.array(exact)[middle], rtol=1e-11)


def test_running_integral_keeps_its_relative_accuracy_in_an_exponential_tail():
    x = 0.05 * np.arange(-1600, 200)
    logistic = 1 / (2 * np.cosh(x / 2)) ** 2
    exact = 1 / (1 + np.exp(-x))
    integral = running_integral(logistic, 0.05)
    # the grid starts at a value of e^-80; twenty later the start is forgotten
    np.testing.assert_allclose(integral[400:-8], exact[400:-8], rtol=3e-9)
    np.testing.assert_allclose(integral[800:-8], exact[800:-8], rtol=1e-12)
