"""Quadrature rules against Bessel ratios in high precision, and normal moments."""

import math

import numpy as np
import pytest
from mpmath import mp

from largeprompt.laws.projections import normal_rule, sphere_rule


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 7, 19, 64, 1000])
@pytest.mark.parametrize("scale", [0.0, 0.3, 5.0, 100.0, 400.0])
def test_sphere_rule_gives_the_bessel_ratio(dim, scale):
    rule = sphere_rule(dim, scale)
    tilted = rule.probability * np.exp(scale * (rule.nodes - 1))
    found = float(tilted @ rule.nodes / tilted.sum())
    order = mp.mpf(dim) / 2
    exact = mp.besseli(order, scale) / mp.besseli(order - 1, scale) if scale else 0
    assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-15)
    assert rule.probability @ rule.nodes**2 == pytest.approx(1 / dim, rel=1e-12)


@pytest.mark.parametrize("scale", [0.0, 0.5, 3.0, 10.0, 20.0])
def test_normal_rule_gives_the_tilted_moments(scale):
    rule = normal_rule(scale)
    tilted = rule.probability * np.exp(scale * rule.nodes - scale**2 / 2)
    assert tilted.sum() == pytest.approx(1, rel=1e-12)
    assert tilted @ rule.nodes == pytest.approx(scale, rel=1e-12, abs=1e-15)
    assert tilted @ rule.nodes**4 == pytest.approx(
        scale**4 + 6 * scale**2 + 3, rel=1e-11
    )


@pytest.mark.parametrize("scale", [-1.0, 401.0, math.nan])
def test_rules_refuse_a_scale_out_of_range(scale):
    with pytest.raises(ValueError, match="scale must be"):
        sphere_rule(3, scale)
    with pytest.raises(ValueError, match="scale must be"):
        normal_rule(scale)
