"""Linear attention: closed forms against every prompt, optimum, plateaus, shifts."""

import dataclasses
import itertools
import math

import pytest
import torch

from largeprompt.icl import (
    Conventions,
    Normaliser,
    RegressionTask,
    TokenLaw,
    decaying_cov,
    limit_prediction,
    limit_risk,
    linear_optimum,
    linear_prediction,
    linear_risk,
    preset,
    principal_optimum,
    reading_head,
)
from largeprompt.testing import close
from tests.icl.product_rule import every_prompt, square_error, tensor

TASK = RegressionTask(
    token_cov=tensor([[1.0, 0.4], [0.4, 0.7]]),
    query_cov=tensor([[0.8, -0.3], [-0.3, 1.1]]),
    task_cov=tensor([[0.6, 0.2], [0.2, 0.5]]),
    noise_variance=0.3,
)
LINE = RegressionTask(tensor([[1.3]]), tensor([[0.7]]), tensor([[0.9]]), 0.2)
OWN = Conventions(query_in_prompt=True, normaliser=Normaliser.TOKENS_AND_QUERY)


def head(dim: int, seed: int = 0):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)
    return draw(dim + 1, dim + 1), draw(dim + 1)


@pytest.mark.parametrize("law", list(TokenLaw))
@pytest.mark.parametrize(("task", "n"), [(TASK, 1), (LINE, 1), (LINE, 3)])
def test_linear_risk_is_the_average_over_every_prompt(task, n, law):
    task = dataclasses.replace(task, token_law=law)
    bilinear, value = head(task.dim)
    prompts, weights = every_prompt(task, n, nodes=3, query_nodes=3)
    prediction = linear_prediction(prompts, bilinear, value)
    theirs = square_error(prompts, weights, prediction, task)
    close(linear_risk(task, n, bilinear, value), theirs)


@pytest.mark.parametrize(("task", "n"), [(TASK, 1), (LINE, 3)])
@pytest.mark.parametrize("normaliser", list(Normaliser))
def test_linear_risk_counts_the_query_among_the_tokens(task, n, normaliser):
    rules = Conventions(query_in_prompt=True, normaliser=normaliser)
    bilinear, value = head(task.dim)
    prompts, weights = every_prompt(task, n, nodes=3, query_nodes=4)
    prediction = linear_prediction(prompts, bilinear, value, rules)
    theirs = square_error(prompts, weights, prediction, task)
    close(linear_risk(task, n, bilinear, value, rules), theirs)


def test_the_average_over_every_prompt_sees_a_kurtosis_that_is_left_out():
    task = dataclasses.replace(TASK, token_law=TokenLaw.RADEMACHER)
    bilinear, value = head(2)
    prompts, weights = every_prompt(task, 1, nodes=3, query_nodes=3)
    prediction = linear_prediction(prompts, bilinear, value)
    theirs = square_error(prompts, weights, prediction, task)
    assert not torch.isclose(linear_risk(TASK, 1, bilinear, value), theirs, rtol=0.01)


@pytest.mark.parametrize("rules", [Conventions(), OWN])
def test_linear_risk_tends_to_that_of_the_limit(rules):
    bilinear, value = head(2)
    limit = limit_risk(TASK, bilinear, value)
    close(linear_risk(TASK, math.inf, bilinear, value, rules), limit)
    near = linear_risk(TASK, 1e13, bilinear, value, rules)
    close(near, limit)


@pytest.mark.parametrize("rules", [Conventions(), OWN])
def test_linear_risk_differentiates(rules):
    arguments = tuple(t.requires_grad_() for t in head(2))
    assert torch.autograd.gradcheck(
        lambda u, v: linear_risk(TASK, 7, u, v, rules), arguments
    )


@pytest.mark.parametrize("law", list(TokenLaw))
@pytest.mark.parametrize("n", [1, 6, 1000, math.inf])
def test_linear_optimum_is_stationary_and_lowest_nearby(law, n):
    task = dataclasses.replace(TASK, token_law=law)
    form = linear_optimum(task, n).requires_grad_()
    risk = linear_risk(task, n, *reading_head(form))
    (gradient,) = torch.autograd.grad(risk, form)
    close(gradient, torch.zeros_like(gradient))
    bend = tensor([[0.1, -0.2], [0.0, 0.15]])
    assert linear_risk(task, n, *reading_head(form + bend)) > risk


def test_linear_optimum_is_that_of_zhang_frei_and_bartlett():
    task = preset("zhang-frei-bartlett").task
    task = dataclasses.replace(task, token_cov=decaying_cov(5, 0.5))
    n, cov = 23, task.token_cov
    theirs = torch.linalg.inv((1 + 1 / n) * cov + cov.trace() / n * torch.eye(5))
    close(linear_optimum(task, n), theirs)


def test_principal_optima_stand_on_the_published_plateaus():
    setting = preset("zhang-singh")
    (n,) = setting.lengths
    risks = [
        float(
            linear_risk(
                setting.task,
                n,
                *reading_head(principal_optimum(setting.task, n, m)),
                setting.conventions,
            )
        )
        for m in range(5)
    ]
    published = [1.0, 0.64057971, 0.37737216, 0.2098046, 0.13599507]
    assert risks == pytest.approx(published, abs=1e-7)
    spectrum = [0.4, 0.3, 0.2, 0.1]
    gains = [s / (1 + (1 + 1.0 / s) / n) for s in spectrum]
    formula = [1.0 - gain for gain in itertools.accumulate([0.0, *gains])]
    assert risks == pytest.approx(formula, rel=1e-12)


def test_covariate_scale_multiplies_the_limit_by_its_square():
    cov = decaying_cov(3, 0.5)
    eye = torch.eye(3, dtype=torch.float64)
    b = float(torch.linalg.inv(cov @ cov).trace()) ** 0.25
    bilinear, value = reading_head(torch.linalg.inv(cov) / b)
    shifted = RegressionTask(4 * cov, eye, eye, 0.0)
    close(limit_prediction(shifted, bilinear, b * value).linear, 4 * eye)


def test_a_head_trained_at_one_length_is_tested_at_another():
    task = preset("paper-intended").task
    trained = reading_head(linear_optimum(task, 20))
    risks = [float(linear_risk(task, m, *trained)) for m in (5, 20, 80, math.inf)]
    assert risks == sorted(risks, reverse=True)
    for m in (5, 80):
        best = float(linear_risk(task, m, *reading_head(linear_optimum(task, m))))
        assert best < float(linear_risk(task, m, *trained))


def test_linear_risk_refuses_what_does_not_fit():
    bilinear, value = head(2)
    with pytest.raises(ValueError, match="n must be at least 1; got 0"):
        linear_risk(TASK, 0, bilinear, value)
    with pytest.raises(ValueError, match=r"shapes .* \(4, 4\) and \(4,\)"):
        linear_risk(TASK, 3, *head(3))
    with pytest.raises(ValueError, match="float64"):
        linear_risk(TASK, 3, bilinear.float(), value.float())
    rademacher = dataclasses.replace(TASK, token_law=TokenLaw.RADEMACHER)
    with pytest.raises(ValueError, match="Gaussian inputs"):
        linear_risk(rademacher, 3, bilinear, value, OWN)
    with pytest.raises(ValueError, match="components must be from 0 to 2; got 3"):
        principal_optimum(TASK, 3, 3)
