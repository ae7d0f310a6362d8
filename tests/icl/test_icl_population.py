"""The risk of one softmax head at any length: the definition, published values."""

import dataclasses
import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from largeprompt.icl import (
    LawFunctions,
    PopulationRisk,
    RegressionTask,
    TokenLaw,
    label_blind_risk,
    law_functions,
    limit_risk,
    linear_risk,
    population_risk,
    preset,
    reading_head,
    simulated_risk,
    softmax_prediction,
)
from largeprompt.icl.cases import Cases, cases
from largeprompt.icl.control import controlled_means
from largeprompt.icl.points import normal_points
from largeprompt.laws import gaussian_law
from largeprompt.testing import close
from tests.icl.product_rule import (
    normal_rule,
    product,
    prompts_of_a_case,
    square_error,
    tensor,
)

LINE = RegressionTask(tensor([[0.8]]), tensor([[0.7]]), tensor([[0.9]]), 0.2)
PLANE = RegressionTask(
    token_cov=tensor([[1.0, 0.4], [0.4, 0.7]]),
    query_cov=tensor([[0.8, -0.3], [-0.3, 1.1]]),
    task_cov=tensor([[0.6, 0.2], [0.2, 0.5]]),
    noise_variance=0.3,
)
PUBLISHED = {10: 0.8754, 20: 0.5859, 40: 0.4048, 100: 0.2844}  # He et al. (2025)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def head(dim: int, size: float = 0.4, seed: int = 1):
    draws = generator(seed)
    draw = lambda *shape: torch.randn(*shape, generator=draws, dtype=torch.float64)
    return size * draw(dim + 1, dim + 1), draw(dim + 1)


def one_case(task: RegressionTask, w, x_query) -> Cases:
    root = torch.linalg.cholesky(task.token_cov)
    noise = math.sqrt(task.noise_variance)
    return Cases(root, noise, w.reshape(1, 1, -1), x_query.reshape(1, 1, -1))


@pytest.mark.parametrize("n", [1, 2, 17, 1000, 1e6, 1e15])
def test_law_functions_are_the_exact_law_and_its_slope(n):
    variance = torch.tensor([0.0, 1e-9, 0.3, 2.0, 11.0, 90.0, 400.0]).double()
    variance.requires_grad_()
    values, law = law_functions(n)(variance), gaussian_law(n, variance.detach())
    (slope,) = torch.autograd.grad(values.inverse_ess.sum(), variance)
    close(values.inverse_ess, torch.from_numpy(law.inverse_ess))
    close(values.parallel_excess, torch.from_numpy(law.parallel_excess))
    close(2 * slope, torch.from_numpy(law.inverse_ess_slope))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("size", [0.0, 0.3])
def test_risk_given_a_case_is_the_average_over_every_prompt(n, size):
    bilinear, value = head(1, size)
    w, x_query = tensor([0.7]), tensor([-0.9])
    nodes = 30 if n < 3 else 11
    prompts, weights = prompts_of_a_case(LINE, w, x_query, n, nodes)
    prediction = softmax_prediction(prompts, bilinear, value)
    theirs = square_error(prompts, weights, prediction, LINE)
    risk = PopulationRisk(LINE, law_functions(n), one_case(LINE, w, x_query))
    close(risk.given_cases(bilinear, value)[0, 0], theirs)


def test_the_average_over_every_prompt_sees_a_law_of_another_length():
    bilinear, value = head(1, 0.3)
    w, x_query = tensor([0.7]), tensor([-0.9])
    prompts, weights = prompts_of_a_case(LINE, w, x_query, 2, 30)
    prediction = softmax_prediction(prompts, bilinear, value)
    theirs = square_error(prompts, weights, prediction, LINE)
    risk = PopulationRisk(LINE, law_functions(2.01), one_case(LINE, w, x_query))
    ours = risk.given_cases(bilinear, value)[0, 0]
    assert abs(float(ours / theirs) - 1) > 1e-4


def test_risk_of_one_token_is_that_of_its_value_alone():
    bilinear, value = head(2)
    risk = population_risk(PLANE, 1, generator(), count=16)(bilinear, value)
    flat = torch.cat([value[:-1], value[-1:]])
    signal = (PLANE.token_cov * PLANE.task_cov).sum() + PLANE.noise_variance
    variance = flat[:2] @ PLANE.token_cov @ flat[:2] + flat[2] ** 2 * signal
    answer = (PLANE.query_cov * PLANE.task_cov).sum() + PLANE.noise_variance
    close(risk, variance + answer)


def test_risk_at_infinity_is_the_limit_and_shared_with_linear_attention():
    bilinear, value = head(2)
    estimate = population_risk(PLANE, math.inf, generator()).estimate(bilinear, value)
    assert estimate.value == float(limit_risk(PLANE, bilinear, value))
    assert estimate.radius == 0.0
    close(linear_risk(PLANE, math.inf, bilinear, value), tensor(estimate.value))


def averaged_on_the_line(n: float, bilinear, value) -> float:
    """The risk for scalar inputs, by a product rule over the task and the query."""
    nodes, weights = product([normal_rule(60)] * 2)
    w = nodes[:, 0] * math.sqrt(0.9)
    x_query = nodes[:, 1] * math.sqrt(0.7)
    tilt = bilinear[:, 0] * x_query.unsqueeze(-1)
    cov = torch.stack([0.8 + 0 * w, 0.8 * w, 0.8 * w, 0.8 * w**2 + 0.2], -1)
    seen = (cov.unflatten(-1, (2, 2)) @ tilt.unsqueeze(-1)).squeeze(-1)
    law = gaussian_law(n, (tilt * seen).sum(-1))
    limit = seen @ value
    variance = cov @ torch.outer(value, value).ravel()
    mean = (1 - torch.from_numpy(law.inverse_ess)) * limit
    second = torch.from_numpy(law.parallel_excess) * limit**2
    second = second + torch.from_numpy(law.inverse_ess) * variance + limit**2
    second = second - 2 * torch.from_numpy(law.inverse_ess) * limit**2
    answer = w * x_query
    return float(weights @ (second - 2 * mean * answer + answer**2)) + 0.2


@pytest.mark.statistical
@pytest.mark.parametrize("n", [2, 11, 300])
def test_estimate_is_not_refuted_by_a_product_rule_nor_its_lie_believed(n, alpha):
    bilinear, value = head(1, 0.3)
    risk = population_risk(LINE, n, generator(n), count=128, replicates=64)
    estimate = risk.estimate(bilinear, value, confidence=1 - alpha)
    exact = averaged_on_the_line(n, bilinear, value)
    low, high = estimate.interval
    assert low <= exact <= high
    assert not low <= 1.02 * exact <= high


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["paper-as-published", "paper-intended"])
def test_estimate_is_not_refuted_by_the_quadratic_form_nor_its_lie_believed(
    name, alpha
):
    task = preset(name).task
    bilinear, value = head(5, 0.25)
    bilinear[-1] = 0.0  # labels are not read
    risk = population_risk(task, 30, generator(2), count=512, replicates=64)
    estimate = risk.estimate(bilinear, value, confidence=1 - alpha)
    exact = label_blind_risk(task, 30, bilinear, value).value
    low, high = estimate.interval
    assert low <= exact <= high
    assert not low <= 1.02 * exact <= high


@pytest.mark.parametrize("n", PUBLISHED)
def test_risk_is_the_published_one_of_he_et_al(n):
    bilinear, value = reading_head(torch.eye(5).double() / math.sqrt(5))
    value = 1.6278 * value
    task = preset("he-et-al").task
    exact = label_blind_risk(task, n, bilinear, value).value
    assert exact == pytest.approx(PUBLISHED[n], rel=0.02)
    assert exact == pytest.approx(averaged_over_the_radius(n), rel=1e-5)
    estimate = population_risk(task, n, generator(), count=4096).estimate(
        bilinear, value
    )
    assert estimate.relative_error < 2e-3
    assert estimate.value == pytest.approx(exact, rel=5e-3)


def averaged_over_the_radius(n: int) -> float:
    """The risk of He et al.'s head by Gauss and Laguerre over half the square norm."""
    half, weights = np.polynomial.laguerre.laggauss(60)
    weights = weights * half**1.5 / math.gamma(2.5)
    square = 2 * half / 5
    law = gaussian_law(n, square)
    gain = 1.6278 / math.sqrt(5)
    limit = law.parallel_excess * gain**2 * square
    spread = law.inverse_ess * (1.6278**2 * 1.1 - 2 * (gain**2 - gain) * square)
    return float(weights @ (limit + spread + (gain - 1) ** 2 * square)) + 0.1


def test_label_blind_risk_serves_heads_with_dead_directions():
    bilinear, value = head(2)
    bilinear = bilinear.clone()
    bilinear[-1] = 0.0
    dead = bilinear.clone()
    dead[:, 1] = 0.0
    nearly = dead.clone()
    nearly[:2, 1] = 1e-5 * bilinear[:2, 1]
    ours = label_blind_risk(PLANE, 9, dead, value).value
    assert ours == pytest.approx(
        label_blind_risk(PLANE, 9, nearly, value).value, rel=1e-4
    )
    flat = label_blind_risk(PLANE, 9, torch.zeros_like(dead), value).value
    risk = population_risk(PLANE, 9, generator(), count=16)
    assert flat == pytest.approx(float(risk(torch.zeros_like(dead), value)), rel=1e-12)


def test_risk_differentiates_in_both_arguments():
    risk = population_risk(PLANE, 13, generator(), count=8, replicates=2)
    arguments = tuple(t.requires_grad_() for t in head(2))
    assert torch.autograd.gradcheck(risk, arguments)
    assert torch.autograd.gradgradcheck(risk, arguments)


@functools.cache
def law_of_five() -> LawFunctions:
    return law_functions(5)


@given(size=st.floats(0, 1.2), seed=st.integers(0, 2**31 - 1))
def test_no_head_is_better_than_the_noise_of_the_answer(size, seed):
    bilinear, value = head(2, size, seed)
    normals = normal_points(8, 4, generator(seed), replicates=2)
    risk = PopulationRisk(PLANE, law_of_five(), cases(PLANE, normals))
    assert (risk.given_cases(bilinear, value) >= PLANE.noise_variance).all()


@given(seed=st.integers(0, 2**31 - 1))
def test_controls_leave_nothing_of_their_own_combinations(seed):
    draws = generator(seed)
    controls = torch.randn(4, 16, 3, generator=draws, dtype=torch.float64)
    slopes = torch.randn(3, generator=draws, dtype=torch.float64)
    expected = torch.randn(3, generator=draws, dtype=torch.float64)
    means = controlled_means(controls @ slopes + 0.7, controls, expected)
    close(means, (expected @ slopes + 0.7).expand(4))


def test_points_fill_the_normal_law_evenly():
    points = normal_points(256, 3, generator(), replicates=2)
    assert points.shape == (2, 256, 3)
    cells = torch.special.ndtr(points).mul(256).long()
    everywhere = torch.arange(256).expand(2, 3, -1)
    assert torch.equal(cells.sort(dim=1).values.mT, everywhere)


def test_simulated_risk_covers_tokens_without_an_exact_law():
    task = dataclasses.replace(PLANE, token_law=TokenLaw.RADEMACHER)
    bilinear, value = head(2)
    estimate = simulated_risk(
        task,
        lambda prompts: softmax_prediction(prompts, bilinear, value),
        n=7,
        prompts=1000,
        generator=generator(),
    )
    assert 0 < estimate.radius < estimate.value
    with pytest.raises(ValueError, match="needs Gaussian inputs"):
        population_risk(task, 7, generator())


def test_population_risk_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="n must be a number from 1"):
        population_risk(PLANE, 0.5, generator())
    with pytest.raises(ValueError, match="count must be a power of two"):
        population_risk(PLANE, 5, generator(), count=100)
    risk = population_risk(PLANE, 5, generator(), count=8)
    with pytest.raises(ValueError, match="bilinear and value must have shapes"):
        risk(*head(3))
    with pytest.raises(ValueError, match="every logit variance must be at most 400"):
        risk(*head(2, size=100.0))
    with pytest.raises(ValueError, match="must not read labels"):
        label_blind_risk(PLANE, 5, *head(2))
