"""What the limit knows: minima, curvature and steps; what control does to variance."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from largeprompt.icl import preset
from largeprompt.icl.batches import FullPrompts, ProjectedPrompts, PromptStream
from largeprompt.icl.estimators import BatchGradient
from largeprompt.icl.optimisers import SGD
from largeprompt.icl.parameters import Merged, Separate
from largeprompt.icl.polynomials import limit_risk
from largeprompt.icl.population import population_risk
from largeprompt.icl.responses import Linear, Softmax, responses
from largeprompt.icl.tasks import RegressionTask
from largeprompt.icl.train import Training
from largeprompt.icl.transfer import limit_curvature
from largeprompt.icl.variance import variance_reduction

INTENDED = preset("paper-intended")
FACTOR = INTENDED.conventions.logit_scale.factor(5)


SCALAR_START = Merged(
    torch.tensor([[0.4, 0.0], [0.0, 0.0]]).double(), torch.tensor([0.0, 1.0]).double()
)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def scalar_task(power: float, task: float, noise: float) -> RegressionTask:
    cov, w = torch.tensor([[power]]).double(), torch.tensor([[task]]).double()
    return RegressionTask(cov, cov, w, noise)


def test_spectrum_in_one_dimension_is_the_one_worked_out_by_hand():
    s, w, noise = 0.6, 1.7, 0.3
    found = limit_curvature(scalar_task(s, w, noise), SCALAR_START)
    assert isinstance(found.endpoint, Merged)
    a, b = float(found.endpoint.bilinear[0, 0]), float(found.endpoint.value[1])
    assert math.isclose(a * b * s, 1, rel_tol=1e-5)
    reading = (
        2
        * s
        * np.array(
            [
                [(s * a) ** 2, s * a * b * (noise + w * s)],
                [s * a * b * (noise + w * s), b**2 * (noise**2 + 2 * w * s * noise)],
            ]
        )
    )
    reading[1, 1] += 2 * s * 3 * (w * b * s) ** 2
    learning = 2 * w * s**3 * (a**2 + b**2)
    expected = sorted([0, 0, 0, learning, *np.linalg.eigvalsh(reading)])
    np.testing.assert_allclose(found.spectrum.numpy(), expected, rtol=2e-5, atol=1e-5)


def test_balanced_flow_ends_at_the_closed_form_of_the_paper():
    cov = INTENDED.task.token_cov
    task = RegressionTask(cov, cov, torch.eye(5).double(), 0.1)
    form = 0.2 * torch.eye(5, dtype=torch.float64)
    bilinear = torch.nn.functional.pad(form, (0, 1, 0, 1))
    value = torch.zeros(6, dtype=torch.float64)
    value[-1] = form.norm()
    end = limit_curvature(task, Merged(bilinear, value)).endpoint
    assert isinstance(end, Merged)
    inverse = torch.linalg.inv(cov)
    gain = inverse.square().sum().sqrt().sqrt()  # tr(S^-2)^(1/4)
    expected = Merged(torch.nn.functional.pad(inverse / gain, (0, 1, 0, 1)), value)
    expected.value[-1] = gain
    torch.testing.assert_close(end.flat(), expected.flat(), rtol=1e-4, atol=1e-4)


def descend(task: RegressionTask, initial: Merged, rate: float) -> torch.Tensor:
    """The excess risk of the limit along 300 steps of gradient descent."""
    flat, path = initial.flat(), []
    for _ in range(300):
        flat = flat.detach().requires_grad_()
        head = initial.unflat(flat)
        loss = limit_risk(task, head.bilinear, head.value) - task.target_noise_variance
        (gradient,) = torch.autograd.grad(loss, flat)
        path.append(loss.detach())
        flat = flat - rate * gradient
    return torch.stack(path)


def test_limit_step_contracts_at_the_best_rate_and_a_step_beyond_the_edge_does_not():
    task = scalar_task(0.6, 1.7, 0.3)
    found = limit_curvature(task, SCALAR_START)
    end = found.endpoint.flat()
    noise = torch.randn(6, generator=generator(1), dtype=torch.float64)
    near = SCALAR_START.unflat(end + 1e-3 * noise)
    contraction = (found.largest - found.smallest) / (found.largest + found.smallest)
    path = descend(task, near, found.rate)
    measured = float((path[150] / path[50]) ** (1 / 200))  # of the distance
    assert math.isclose(measured, contraction, rel_tol=1e-3)
    for other in (0.8 * found.rate, 1.02 * found.rate):
        slower = descend(task, near, other)
        assert slower[150] > path[150]
    beyond = descend(task, near, 2.02 / found.largest)
    assert beyond[-1] > beyond[0]


def test_flow_that_starts_on_the_saddle_has_no_minimum_to_measure():
    zero = Merged(torch.zeros(6, 6).double(), torch.zeros(6).double())
    with pytest.raises(ValueError, match="must end in a minimum; it ends with an exc"):
        limit_curvature(INTENDED.task, zero)


def test_limit_step_beats_the_published_step_on_softmax_at_finite_length():
    n = 50
    initial = Separate.draw(5, generator(0))
    found = limit_curvature(INTENDED.task, initial, logit_factor=FACTOR)
    rules, source = INTENDED.conventions, ProjectedPrompts()
    stream = PromptStream(INTENDED.task, n, rules, source)
    risk = population_risk(INTENDED.task, n, generator(2), count=256, replicates=2)
    risks = []
    for rate in (1e-3, found.rate):
        training = Training(stream, BatchGradient(Softmax()), SGD(rate), initial)
        state = training.advance(training.start(), 100)
        head = state.parameters.merge(FACTOR)
        risks.append(float(risk(head.bilinear, head.value)))
    assert risks[0] > 1
    assert risks[1] < 0.6


def test_variance_reduction_is_the_one_of_gradients_taken_prompt_by_prompt():
    where = PromptStream(
        INTENDED.task, 8, INTENDED.conventions, FullPrompts(torch.float64), batch=23
    )
    parameters = Separate.draw(5, generator(3))
    found = variance_reduction(where, parameters, generator(4))
    prompts = where.task.sample(23, 8, generator(4))
    gradients = {"softmax": [], "linear": []}
    for tokens, query, answer in zip(
        prompts.tokens, prompts.query, prompts.y_query, strict=True
    ):
        for kind, rows in gradients.items():
            flat = parameters.flat().requires_grad_()
            head = parameters.unflat(flat).merge(FACTOR)
            logits = tokens @ head.bilinear @ query
            weights = logits.softmax(0) if kind == "softmax" else logits / 8
            loss = (weights @ (tokens @ head.value) - answer) ** 2
            rows.append(torch.autograd.grad(loss, flat)[0])
    softmax, linear = (torch.stack(rows).numpy() for rows in gradients.values())

    def total(rows: np.ndarray) -> float:
        return float(rows.var(axis=0).sum())

    reduced = {b: total(softmax - b * linear) for b in (1.0, found.coefficient)}
    assert math.isclose(found.factor_at_one, total(softmax) / reduced[1.0])
    assert math.isclose(found.factor, total(softmax) / reduced[found.coefficient])
    nearby = [total(softmax - (found.coefficient + e) * linear) for e in (-0.01, 0.01)]
    assert min(nearby) > reduced[found.coefficient]


def test_control_reduces_variance_the_more_the_longer_the_prompt():
    parameters = Separate.draw(5, generator(0))
    factors = [
        variance_reduction(
            PromptStream(
                INTENDED.task, n, INTENDED.conventions, ProjectedPrompts(), batch=2000
            ),
            parameters,
            generator(5),
        ).factor_at_one
        for n in (20, 200, 2000)
    ]
    assert factors[0] > 1
    assert 3 * factors[0] < factors[1]
    assert 3 * factors[1] < factors[2]


def test_query_in_the_prompt_is_controlled_too():
    rules = dataclasses.replace(INTENDED.conventions, query_in_prompt=True)
    where = PromptStream(INTENDED.task, 40, rules, ProjectedPrompts(), batch=500)
    parameters = Separate.draw(5, generator(0))
    head = parameters.merge(FACTOR)
    (response,) = responses(where.draw(head, generator(6)), Linear(where.divisor))
    assert response.prediction.isfinite().all()
    assert variance_reduction(where, parameters, generator(6)).factor > 1
