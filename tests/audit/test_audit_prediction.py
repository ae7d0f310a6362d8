import math

import numpy as np
import pytest
import torch
from scipy import stats

from largeprompt.audit.prediction import held_out_mean_square, tokens_needed
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.statistics import query_statistics
from largeprompt.audit.surface import law_surface
from largeprompt.laws.exact import gaussian_law
from largeprompt.laws.plan import smallest_n

TOKENS = 75
WIDTH, VALUE_WIDTH = 4, 3
REPLICATES = 4000


@pytest.fixture(scope="module")
def surface():
    return law_surface()


@pytest.fixture(scope="module")
def gaussian_tokens():
    """The same query against many prompts of correlated Gaussian keys and values."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    mixing = 0.5 * normal(WIDTH + VALUE_WIDTH, WIDTH + VALUE_WIDTH)
    cov = mixing @ mixing.mT
    q = normal(WIDTH)
    q *= (1.2 / (q @ cov[:WIDTH, :WIDTH] @ q)).sqrt()  # logit variance 1.2
    tokens = normal(REPLICATES, TOKENS, WIDTH + VALUE_WIDTH) @ mixing.mT + normal(
        WIDTH + VALUE_WIDTH
    )
    prefixes = Prefixes.last(TOKENS, 1, None)
    measured = query_statistics(
        q.expand(REPLICATES, TOKENS, WIDTH),
        tokens[..., :WIDTH],
        tokens[..., WIDTH:],
        prefixes,
        scale=1.0,
    )
    shift = cov[WIDTH:, :WIDTH] @ q
    population = {
        "response": float(shift @ shift),
        "variance": float(cov[WIDTH:, WIDTH:].trace()),
    }
    return measured, prefixes, population


def refuted(samples, mean, alpha):
    """Whether independent samples refute a mean: Student's t.

    Normal only in the limit: at 4,000 squares of skewness 3 and five standard errors
    the tail is up to ten times the nominal one, so that it spends a tenth of alpha.
    """
    _, probability = stats.ttest_1samp(samples, mean)
    return probability <= alpha / 10


def prediction(prefixes, population, logit_variance):
    attended = int(prefixes.attended[0])
    return float(
        held_out_mean_square(
            gaussian_law(attended, logit_variance), TOKENS - attended, **population
        )
    )


@pytest.mark.statistical
def test_held_out_error_of_gaussian_tokens_is_the_predicted_one(gaussian_tokens, alpha):
    measured, prefixes, population = gaussian_tokens
    samples = measured.held_out[:, 0].numpy()
    assert not refuted(samples, prediction(prefixes, population, 1.2), alpha)


@pytest.mark.statistical
def test_a_prediction_with_the_wrong_logit_variance_is_refuted(gaussian_tokens, alpha):
    measured, prefixes, population = gaussian_tokens
    samples = measured.held_out[:, 0].numpy()
    assert refuted(samples, prediction(prefixes, population, 1.6), alpha)
    assert refuted(samples, prediction(prefixes, population, 0.8), alpha)


@pytest.mark.statistical
def test_a_prediction_that_forgets_the_estimated_limit_is_refuted(
    gaussian_tokens, alpha
):
    measured, prefixes, population = gaussian_tokens
    law = gaussian_law(int(prefixes.attended[0]), 1.2)
    samples = measured.held_out[:, 0].numpy()
    assert refuted(samples, float(law.mean_square_error(**population)), alpha)


@pytest.mark.statistical
def test_inverse_ess_of_gaussian_tokens_has_the_mean_of_the_law(gaussian_tokens, alpha):
    samples = gaussian_tokens[0].inverse_ess[:, 0].numpy()
    assert not refuted(samples, float(gaussian_law(TOKENS, 1.2).inverse_ess), alpha)
    assert refuted(samples, float(gaussian_law(TOKENS, 1.6).inverse_ess), alpha)


def test_limit_estimated_from_endless_tokens_leaves_the_law_of_the_prompt():
    law = gaussian_law(50, 2.0)
    endless = held_out_mean_square(law, 1e15, 1.5, 4.0)
    np.testing.assert_allclose(endless, law.mean_square_error(1.5, 4.0), rtol=1e-12)


def test_surface_is_the_exact_law(surface):
    rng = np.random.default_rng(0)
    n = np.exp(rng.uniform(0, math.log(1e15), 300))
    variance = np.concatenate([rng.uniform(0, 20, 150) ** 2, rng.uniform(0, 9, 150)])
    ours, exact = surface(n, variance), gaussian_law(n, variance)
    for field in ("inverse_ess", "parallel_excess", "parallel_mse"):
        theirs = getattr(exact, field)
        np.testing.assert_allclose(getattr(ours, field), theirs, rtol=1e-3)
    slopes = (ours.inverse_ess_slope - exact.inverse_ess_slope) / exact.inverse_ess
    assert np.abs(slopes).max() < 2e-3


def test_surface_holds_its_end_beyond_its_range(surface):
    np.testing.assert_array_equal(
        surface(1000, 1e6).inverse_ess, surface(1000, 400).inverse_ess
    )


def test_tokens_needed_is_where_the_law_meets_the_target(surface):
    needed = tokens_needed(
        surface, [2.0, 7.0], response=1.0, variance=5.0, target=[0.01, 0.3]
    )
    law = gaussian_law(needed, [2.0, 7.0])
    np.testing.assert_allclose(law.mean_square_error(1.0, 5.0), [0.01, 0.3], rtol=2e-2)


def test_tokens_needed_is_the_smallest_integer_of_the_scalar_search(surface):
    rng = np.random.default_rng(0)
    variance, target = rng.uniform(0, 12, 40), 10 ** rng.uniform(-4, 1, 40)
    ours = tokens_needed(surface, variance, 1.5, 4.0, target)
    for s2, goal, n in zip(variance, target, ours, strict=True):
        theirs = smallest_n(
            lambda size, s2=s2: float(surface(size, s2).mean_square_error(1.5, 4.0)),
            goal,
        )
        assert theirs == n


def test_tokens_needed_is_one_where_values_do_not_vary(surface):
    assert tokens_needed(surface, 2.0, response=0.0, variance=0.0, target=0.01) == 1


def test_tokens_needed_is_not_a_number_beyond_reach(surface):
    beyond = tokens_needed(surface, [300.0, 2.0], 1.0, 5.0, target=[0.01, 0.0])
    assert np.isnan(beyond).all()
