"""One fixed token among Gaussian ones: quadrature, limits and drawn prompts."""

import functools

import numpy as np
import pytest

from largeprompt.laws import gaussian_law
from largeprompt.laws.self_attention import self_attention_law
from largeprompt.testing import refutes_mean
from tests.laws.normal_grid import normal_grid, softmax
from tests.laws.test_monte_carlo import LARGEST_NORMAL


def with_fixed(g, scale: float, own_logit: float):
    """The fixed token's weight, and the weighted sum of g - s over the others."""
    own = np.full((len(g), 1), own_logit)
    weights = softmax(np.concatenate([own, scale * g], axis=1))
    own_weight, others = weights[:, 0], weights[:, 1:]
    return own_weight, (others * (g - scale)).sum(1), (others**2).sum(1)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("own_logit", [-4.0, 0.3, 6.0])
def test_self_attention_law_of_few_tokens_agrees_with_quadrature(n, scale, own_logit):
    g, probability = normal_grid(n)
    own, pull, squares = with_fixed(g, scale, own_logit)
    law = self_attention_law(n, scale**2, own_logit)
    assert law.own_weight == pytest.approx(probability @ own, rel=1e-11)
    assert law.own_square == pytest.approx(probability @ own**2, rel=1e-11)
    assert law.inverse_ess == pytest.approx(probability @ squares, rel=1e-11)
    cross = -probability @ (own * pull) / scale
    assert law.own_cross == pytest.approx(cross, rel=1e-10)
    excess = probability @ (pull**2 - squares) / scale**2
    assert law.parallel_excess == pytest.approx(excess, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("n", [1, 30, 1e9])
@pytest.mark.parametrize("logit_variance", [0.0, 1.0, 16.0])
def test_a_token_without_weight_leaves_the_law_of_the_others(n, logit_variance):
    law, plain = (
        self_attention_law(n, logit_variance, -400.0),
        gaussian_law(n, logit_variance),
    )
    assert law.own_weight < 1e-100
    assert law.inverse_ess == pytest.approx(float(plain.inverse_ess), rel=1e-12)
    assert law.parallel_excess == pytest.approx(float(plain.parallel_excess), rel=1e-12)


@pytest.mark.parametrize("n", [1, 30, 1e9])
@pytest.mark.parametrize("logit_variance", [0.0, 1.0, 16.0])
def test_a_token_of_all_the_weight_silences_the_others(n, logit_variance):
    law = self_attention_law(n, logit_variance, 400.0)
    assert law.own_weight == pytest.approx(1, rel=1e-12)
    assert law.own_square == pytest.approx(1, rel=1e-12)
    assert law.inverse_ess < 1e-100


def test_equal_logits_share_the_weight_equally():
    law = self_attention_law(9, 0.0, 0.0)
    assert law.own_weight == pytest.approx(0.1, rel=1e-12)
    assert law.inverse_ess == pytest.approx(0.09, rel=1e-12)


PROMPTS = 200_000
CASES = [(12, 1.0, 1.5), (30, 1.5, 3.0)]


@functools.cache
def drawn(n: int, scale: float, own_logit: float):
    g = np.random.default_rng(4).standard_normal((PROMPTS, n))
    return with_fixed(g, scale, own_logit)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "scale", "own_logit"), CASES)
def test_own_weight_is_not_refuted_by_drawn_prompts(n, scale, own_logit, alpha):
    own, _, _ = drawn(n, scale, own_logit)
    claim = self_attention_law(n, scale**2, own_logit).own_weight
    assert not refutes_mean(own, claim, 1.0, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "scale", "own_logit"), CASES)
def test_own_weight_for_one_token_fewer_is_refuted(n, scale, own_logit, alpha):
    own, _, _ = drawn(n, scale, own_logit)
    claim = self_attention_law(n - 1, scale**2, own_logit).own_weight
    assert refutes_mean(own, claim, 1.0, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "scale", "own_logit"), CASES)
def test_error_of_self_attention_is_not_refuted_by_drawn_prompts(
    n, scale, own_logit, alpha
):
    own, pull, _ = drawn(n, scale, own_logit)
    law = self_attention_law(n, scale**2, own_logit)
    displacement = own_logit / scale - scale  # d = V = G = 1: z = own_logit / s
    errors = (own * displacement + pull) ** 2
    width = (LARGEST_NORMAL + scale + abs(displacement)) ** 2
    claim = law.mean_square_error(displacement**2, displacement * scale, scale**2, 1.0)
    assert errors.max() <= width
    assert not refutes_mean(errors, claim, width, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize(("n", "scale", "own_logit"), CASES)
def test_error_without_the_own_token_is_refuted(n, scale, own_logit, alpha):
    own, pull, _ = drawn(n, scale, own_logit)
    displacement = own_logit / scale - scale
    errors = (own * displacement + pull) ** 2
    width = (LARGEST_NORMAL + scale + abs(displacement)) ** 2
    claim = 1.5 * float(gaussian_law(n, scale**2).parallel_mse)
    assert refutes_mean(errors, claim, width, alpha)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [((0, 1, 1), "n"), ((1, -1, 1), "logit_variance"), ((1, 1, 401), "own_logit")],
)
def test_self_attention_law_refuses_what_is_out_of_range(arguments, name):
    with pytest.raises(ValueError, match=f"^{name} must be a number from"):
        self_attention_law(*arguments)
