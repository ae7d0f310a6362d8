"""Ridge, Bayes, gradient steps, the proportional limit, single-location regression."""

import dataclasses
import math

import pytest
import torch

from largeprompt.icl import (
    RegressionTask,
    SingleLocationTask,
    bayes_risk,
    gradient_descent_risk,
    one_step_risk,
    preset,
    ridge_risk,
    ridgeless_risk,
)
from largeprompt.testing import close
from tests.icl.product_rule import normal_rule, product, tensor

TASK = RegressionTask(
    token_cov=tensor([[1.0, 0.4], [0.4, 0.7]]),
    query_cov=tensor([[0.8, -0.3], [-0.3, 1.1]]),
    task_cov=tensor([[0.6, 0.2], [0.2, 0.5]]),
    noise_variance=0.3,
)
STEP = 2 * 0.13 * 3.45
ONE_STEP = {10: 0.63360, 20: 0.37211, 40: 0.24136, 100: 0.16291}
RIDGE = {10: 0.19382, 20: 0.13456, 40: 0.11464, 100: 0.10409}  # He et al. (2025)
RIDGE_SIMULATED = {10: 0.1960, 20: 0.1339, 40: 0.1148, 100: 0.1057}  # 10^6 prompts


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def averaged(estimator, task, n, draws) -> float:
    """The risk of what reads a task vector off labels linearly, on the same inputs."""
    x = task.inputs(task.token_cov, (draws, n), generator())
    reads = torch.stack([estimator(inputs) for inputs in x])  # draw, d, n
    eye = torch.eye(task.dim, dtype=torch.float64)
    bias = eye - reads @ x
    error = bias @ task.task_cov @ bias.mT
    error = error + task.noise_variance * reads @ reads.mT
    risks = (error * task.query_cov).sum((-1, -2)) + task.noise_variance
    return float(risks.mean())


@pytest.mark.parametrize("n", [1, 2, 9])
def test_ridge_risk_is_that_of_the_normal_equations(n):
    eye = torch.eye(2, dtype=torch.float64)
    ours = ridge_risk(TASK, n, 0.7, 13, generator()).value
    solve = lambda x: torch.linalg.solve(x.mT @ x + 0.7 * eye, x.mT)
    assert ours == pytest.approx(averaged(solve, TASK, n, 13))


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("noise", [0.3, 0.0])
def test_bayes_risk_is_that_of_the_posterior_mean(n, noise):
    task = dataclasses.replace(TASK, noise_variance=noise)
    w = task.task_cov

    def posterior(x):
        spread = x @ w @ x.mT + noise * torch.eye(n, dtype=torch.float64)
        return w @ x.mT @ torch.linalg.pinv(spread, hermitian=True)

    ours = bayes_risk(task, n, 13, generator()).value
    assert ours == pytest.approx(averaged(posterior, task, n, 13), abs=1e-12)


@pytest.mark.parametrize("steps", [0, 2, 3, 40])
def test_gradient_descent_risk_is_that_of_its_iterates(steps):
    def iterate(x):
        read = torch.zeros(2, 9, dtype=torch.float64)
        for _ in range(steps):
            residual = torch.eye(9, dtype=torch.float64) - x @ read
            read = read + 0.4 / 9 * x.mT @ residual
        return read

    ours = gradient_descent_risk(TASK, 9, 0.4, steps, 13, generator()).value
    assert ours == pytest.approx(averaged(iterate, TASK, 9, 13))


def test_bayes_is_ridge_with_the_right_penalty_and_no_other():
    task = preset("he-et-al").task
    bayes = bayes_risk(task, 12, 50, generator()).value
    penalty = 5 * task.noise_variance
    assert ridge_risk(task, 12, penalty, 50, generator()).value == pytest.approx(bayes)
    for wrong in (0.5 * penalty, 2 * penalty):
        assert ridge_risk(task, 12, wrong, 50, generator()).value > bayes


@pytest.mark.parametrize("n", ONE_STEP)
def test_one_gradient_step_has_the_known_risk(n):
    risk = one_step_risk(preset("he-et-al").task, n, STEP)
    formula = 0.1 + 1 - 2 * STEP + STEP**2 * (1 + 6 / n + 0.5 / n)
    assert risk.value == pytest.approx(formula)
    assert risk.value == pytest.approx(ONE_STEP[n], abs=5e-6)
    same = gradient_descent_risk(preset("he-et-al").task, n, STEP, 1, 2, generator())
    assert same == risk


@pytest.mark.parametrize("n", RIDGE)
def test_ridge_has_the_published_risk(n):
    task = preset("he-et-al").task
    risk = ridge_risk(task, n, 0.5, 20_000, generator())
    assert risk.relative_error < 0.005
    assert risk.value == pytest.approx(RIDGE[n], rel=0.02)
    assert risk.value == pytest.approx(RIDGE_SIMULATED[n], rel=0.005)


def test_ridgeless_risk_has_the_published_digits():
    assert ridgeless_risk(0.5, 0.5, 0.1, 0.1) == pytest.approx(
        1.4898956781741148, abs=1e-12
    )


@pytest.mark.parametrize(
    ("length", "prompts", "simulated"),
    [(10, 0.2, 0.8669), (10, 0.5, 0.8321), (100, 0.2, 0.8194), (100, 0.5, 0.7067)],
)
def test_ridgeless_risk_is_near_published_simulations(length, prompts, simulated):
    risk = ridgeless_risk(prompts, length, 0.5, 0.01)
    assert risk == pytest.approx(simulated, rel=0.02)


@pytest.mark.parametrize("tilt", [0.3, 0.9])
def test_single_location_risk_is_the_average_over_every_prompt(tilt):
    task = SingleLocationTask(2, signal=1.7, noise_variance=0.2)
    nodes, weights = product([normal_rule(40)] * 3)
    logits = tilt * (nodes + tensor([math.sqrt(1.7), 0.0, 0.0]))
    w = torch.softmax(logits, -1)
    error = (1 - w[:, 0]) ** 2 + w[:, 1] ** 2 + w[:, 2] ** 2
    close(tensor(task.softmax_risk(3, tilt)), weights @ error + 0.2)


def test_single_location_draws_hold_the_answer_in_one_shifted_token():
    task = SingleLocationTask(3, signal=400.0)
    prompts = task.sample(50, 7, generator())
    rows = torch.arange(50)
    close(prompts.answer, prompts.x[rows, prompts.place, -1])
    assert torch.equal(prompts.x[..., 0].argmax(-1), prompts.place)


@pytest.mark.parametrize("n", [100, 10_000, 1_000_000])
def test_softmax_finds_the_location_that_the_limit_cannot_see(n):
    strong = SingleLocationTask(4, signal=8 * math.log(n))
    tilts = [0.5 * k for k in range(1, 20)]
    assert min(strong.softmax_risk(n, s) for s in tilts) < 0.15
    weak = SingleLocationTask(4, signal=0.1 * math.log(n))
    assert min(weak.softmax_risk(n, s) for s in tilts) > 0.85
    assert strong.limit_risk == 1.0


def test_a_fixed_tilt_tends_to_the_limit_all_the_same():
    task = SingleLocationTask(4, signal=20.0, noise_variance=0.1)
    risks = [task.softmax_risk(n, 1.0) for n in (10, 10**4, 10**8)]
    assert risks[0] < 0.3
    assert risks == sorted(risks)
    assert risks[-1] == pytest.approx(task.limit_risk, rel=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ridge_risk(TASK, 5, 0.0, 9, generator()), "penalty must be"),
        (lambda: bayes_risk(TASK, 0, 9, generator()), "n must be at least 1"),
        (lambda: ridge_risk(TASK, 5, 1.0, 1, generator()), "at least two draws"),
        (
            lambda: gradient_descent_risk(TASK, 5, 0.1, -1, 9, generator()),
            "steps must be at least 0",
        ),
        (lambda: ridgeless_risk(1.0, 1, 1, 0), "strictly between 0 and 1"),
        (lambda: ridgeless_risk(0.5, 0, 1, 0), "above 0"),
        (lambda: ridgeless_risk(0.5, 1, 1, -1), "at least 0"),
        (lambda: SingleLocationTask(1, 1.0), "dim must be at least 2"),
        (lambda: SingleLocationTask(2, 0.0), "signal must be"),
        (lambda: SingleLocationTask(2, 1.0).softmax_risk(0, 1.0), "n must be"),
    ],
)
def test_baselines_refuse_what_does_not_fit(call, message):
    with pytest.raises(ValueError, match=message):
        call()
