"""Densities of quadratic forms against chi-squared laws and a Bessel function."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ive
from scipy.stats import chi2

from largeprompt.laws.quadratic_form import density, log_chernoff, saddle_points

VALUES = np.geomspace(1e-6, 300, 40)


@pytest.mark.parametrize(
    ("dim", "eigenvalue"), [(1, 1.0), (2, 0.3), (5, 2.0), (64, 0.1)]
)
def test_equal_eigenvalues_give_a_chi_squared_density(dim, eigenvalue):
    found = density(VALUES, np.full(dim, eigenvalue), np.full(dim, 2.0))
    exact = chi2.pdf(VALUES / eigenvalue, dim) / eigenvalue
    kept = exact > 1e-290
    np.testing.assert_allclose(found.plain[kept], exact[kept], rtol=1e-11)
    weighted = (exact * 2 * VALUES / eigenvalue)[kept]  # the squares add up to v
    np.testing.assert_allclose(found.weighted[kept], weighted, rtol=1e-11)


def test_two_eigenvalues_give_a_bessel_function():
    large, small = 1.0, 0.05
    rate, gap = (1 / large + 1 / small) / 4, (1 / small - 1 / large) / 4
    exact = np.exp((gap - rate) * VALUES) * ive(0, gap * VALUES)
    exact /= 2 * np.sqrt(large * small)
    found = density(VALUES, np.array([large, small]), np.array([large, small]))
    np.testing.assert_allclose(found.plain, exact, rtol=1e-12)
    np.testing.assert_allclose(found.weighted, VALUES * exact, rtol=1e-12)


def test_density_of_many_eigenvalues_has_the_right_moments():
    eigenvalues = np.geomspace(1, 1e-3, 12)
    weights = np.linspace(0, 1, 12)

    def moment(power, column):
        def integrand(v):
            return v**power * density(np.array([v]), eigenvalues, weights)[column][0]

        return quad(integrand, 0, 80, epsrel=1e-9, limit=200)[0]

    assert moment(0, 0) == pytest.approx(1, rel=1e-8)
    assert moment(1, 0) == pytest.approx(eigenvalues.sum(), rel=1e-8)
    assert moment(0, 1) == pytest.approx(weights.sum(), rel=1e-8)
    crossed = weights.sum() * eigenvalues.sum() + 2 * weights @ eigenvalues
    assert moment(1, 1) == pytest.approx(crossed, rel=1e-8)


def test_chernoff_bounds_the_tail():
    values = np.array([5.0, 20.0, 100.0])
    eigenvalues = np.ones(3)
    bound = log_chernoff(values, eigenvalues, saddle_points(values, eigenvalues))
    assert (chi2.logsf(values, 3) <= bound).all()
    assert (chi2.logsf(values, 3) > bound - 5).all()
