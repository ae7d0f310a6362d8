"""Moments of softmax weights over labels: enumeration and the Gaussian law."""

import itertools

import numpy as np
import pytest

from largeprompt.laws import gaussian_law
from largeprompt.laws.projections import normal_rule
from largeprompt.laws.weights import weight_moments
from tests.laws.normal_grid import softmax

PROBABILITY = np.array([0.5, 0.3, 0.15, 0.05])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_weight_moments_agree_with_enumeration(n, spread):
    logit = spread * np.array([-1.0, 0.2, 1.0, 2.5])
    features = np.array([[1.0, 0.0], [-1.0, 2.0], [0.5, 0.5], [0.0, -3.0]])
    first, second, pairs = np.zeros(4), np.zeros(4), np.zeros((2, 2))
    for chosen in map(list, itertools.product(range(4), repeat=n)):
        share = PROBABILITY[chosen].prod()
        w = softmax(logit[chosen])
        np.add.at(first, chosen, share * w)
        np.add.at(second, chosen, share * w**2)
        drawn = w[:, None] * features[chosen]
        whole = drawn.sum(0)
        pairs += share * (np.outer(whole, whole) - drawn.T @ drawn)
    found = weight_moments(n, PROBABILITY, logit, features)
    np.testing.assert_allclose(found.first, first, rtol=1e-11)
    np.testing.assert_allclose(found.second, second, rtol=1e-11)
    np.testing.assert_allclose(found.pairs, pairs, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2.5, 100, 1e6, 1e12, 1e15])
@pytest.mark.parametrize("logit_variance", [1e-6, 0.3, 4.0, 25.0, 100.0])
def test_normal_labels_give_the_exact_law_of_gaussian_tokens(n, logit_variance):
    scale = logit_variance**0.5
    rule = normal_rule(scale)
    ahead = (rule.nodes - scale)[:, None]
    found = weight_moments(n, rule.probability, scale * rule.nodes, ahead)
    law = gaussian_law(n, logit_variance)
    along = found.second @ ahead[:, 0] ** 2 + found.pairs[0, 0]
    assert found.first.sum() == pytest.approx(1, rel=1e-11)
    assert found.inverse_ess == pytest.approx(float(law.inverse_ess), rel=1e-10)
    assert along == pytest.approx(float(law.parallel_mse), rel=1e-10)


def test_a_shift_of_every_logit_changes_nothing():
    logit, features = np.array([-1.0, 0.2, 1.0, 2.5]), np.eye(4)
    here = weight_moments(40, PROBABILITY, logit, features)
    there = weight_moments(40, PROBABILITY, logit + 500, features)
    np.testing.assert_allclose(here.second, there.second, rtol=1e-10)
    np.testing.assert_allclose(here.pairs, there.pairs, rtol=1e-10)


def test_weight_moments_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="n must be"):
        weight_moments(0.5, PROBABILITY, np.zeros(4), np.eye(4))
    with pytest.raises(ValueError, match="must be one a label"):
        weight_moments(2, PROBABILITY, np.zeros(3), np.eye(4))
