import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from largeprompt.icl.cases import cases
from largeprompt.icl.flow import Loss, gradient_descent, gradient_flow
from largeprompt.icl.law_functions import law_functions
from largeprompt.icl.law_splines import law_splines
from largeprompt.icl.limit_flow import (
    Blocks,
    balanced,
    eigenvalue_flow,
    endpoint,
    theory_task,
)
from largeprompt.icl.linear import linear_risk
from largeprompt.icl.parameters import Merged, Separate
from largeprompt.icl.points import normal_points
from largeprompt.icl.polynomial_risk import PolynomialRisk
from largeprompt.icl.presets import decaying_cov
from largeprompt.icl.risk import merge, unmerge
from largeprompt.icl.softmax_risk import SoftmaxRisk
from largeprompt.icl.tasks import RegressionTask, TokenLaw
from largeprompt.icl.wide_points import WeightedPoints, wide_points
from largeprompt.laws import gaussian_law

DIM = 3
EYE = torch.eye(DIM, dtype=torch.float64)
TASK = RegressionTask(
    token_cov=decaying_cov(DIM, 0.5),
    query_cov=decaying_cov(DIM, -0.3),
    task_cov=decaying_cov(DIM, 0.2) / DIM,
    noise_variance=0.1,
)
COV = decaying_cov(DIM, 0.5)
LIMIT = PolynomialRisk(theory_task(COV))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def head(seed: int = 0) -> Merged:
    g = generator(seed)
    size = DIM + 1
    draw = lambda *shape: 0.4 * torch.randn(*shape, generator=g, dtype=torch.float64)
    return Merged(draw(size, size), draw(size))


def flat(merged: Merged) -> np.ndarray:
    return merge(merged.bilinear.numpy(), merged.value.numpy())


def of_autograd(risk, merged: Merged) -> tuple[float, np.ndarray]:
    """The value and the gradient of a differentiable risk, by its graph."""
    bilinear = merged.bilinear.clone().requires_grad_()
    value = merged.value.clone().requires_grad_()
    result = risk(bilinear, value)
    result.backward()
    assert bilinear.grad is not None
    assert value.grad is not None
    return result.item(), merge(bilinear.grad.numpy(), value.grad.numpy())


def softmax_risk(n: int, task: RegressionTask = TASK, count: int = 512) -> SoftmaxRisk:
    (points,) = wide_points(count, 2 * task.dim, generator())
    return SoftmaxRisk(task, law_splines([n])[0], points)


@pytest.mark.parametrize("n", [3, 47, 10**6])
def test_law_splines_agree_with_the_exact_law(n):
    values = np.random.default_rng(0).uniform(0, 400, 50)
    read, law = law_splines([n])[0](values), gaussian_law(n, values)
    np.testing.assert_allclose(read.inverse_ess, law.inverse_ess, rtol=1e-8)
    np.testing.assert_allclose(read.excess, law.parallel_excess, rtol=1e-8)
    np.testing.assert_allclose(
        read.inverse_ess_slope, law.inverse_ess_slope / 2, rtol=1e-4, atol=1e-9
    )


@pytest.mark.parametrize("n", [1, 7, math.inf])
def test_polynomial_risk_and_its_gradient_agree_with_the_graph(n):
    merged, risk = head(), PolynomialRisk(TASK, n)
    value, gradient = of_autograd(lambda *h: linear_risk(TASK, n, *h), merged)
    assert_close(risk.value(flat(merged)), value)
    assert_close(risk.gradient(flat(merged)), gradient)


@pytest.mark.parametrize("n", [5, 300])
def test_softmax_risk_and_its_gradient_agree_with_the_graph(n):
    merged, law = head(), law_functions(n)
    normals = normal_points(256, 2 * DIM, generator(), 1)
    drawn = cases(TASK, normals)

    def reference(bilinear, row):
        tilt, read = drawn.whitened(bilinear, row)
        phi, excess = law((tilt * tilt).sum(-1))
        a, spread = (tilt * read).sum(-1), (read * read).sum(-1)
        rest = excess * a**2 + phi * (spread - 2 * a * (a - drawn.answer))
        return linear_risk(TASK, math.inf, bilinear, row) + rest.mean()

    points = WeightedPoints(normals[0].numpy(), np.ones(256))
    risk = SoftmaxRisk(TASK, law_splines([n])[0], points)
    value, gradient = of_autograd(reference, merged)
    assert_close(risk.value(flat(merged)), value)
    # the slopes of the splines are good to 1e-7 or so, their values to 1e-9
    assert_close(risk.gradient(flat(merged)), gradient, rtol=1e-6, atol=1e-7)


def test_wide_points_average_moments_of_the_normal_law():
    (points,) = wide_points(2**14, 2, generator(), stretch=1.3)
    x, y = points.normals.T
    for function, expected in ((1 + 0 * x, 1.0), (x**2, 1.0), (x**2 * y**2, 1.0)):
        assert abs(np.mean(points.weights * function) - expected) < 2e-3
    assert abs(np.mean(x**2) - 1) > 0.5, "without the weights it is another law"


@pytest.mark.parametrize("start", [Separate.draw(DIM, generator()), balanced(EYE / 3)])
@pytest.mark.parametrize("risk", [PolynomialRisk(TASK, 9), softmax_risk(9)])
def test_hessian_is_the_derivative_of_the_gradient(start, risk):
    loss = Loss(risk, start, logit_factor=0.5, loss_factor=0.5)
    at = start.flat().numpy()
    step = 1e-5
    columns = [
        (loss.gradient(at + step * e) - loss.gradient(at - step * e)) / (2 * step)
        for e in np.eye(len(at))
    ]
    np.testing.assert_allclose(
        loss.hessian(at), np.array(columns), rtol=1e-4, atol=1e-4
    )


def test_gradient_is_the_derivative_of_the_risk_in_any_parameters():
    start, risk = Separate.draw(DIM, generator(1)), softmax_risk(20)
    loss = Loss(risk, start, logit_factor=0.5)
    at, step = start.flat().numpy(), 1e-5
    slopes = [
        risk.value(loss.merged(at + step * e)) - risk.value(loss.merged(at - step * e))
        for e in np.eye(len(at))
    ]
    np.testing.assert_allclose(
        loss.gradient(at), np.array(slopes) / (2 * step), rtol=1e-6, atol=1e-8
    )


def test_limit_flow_agrees_with_the_flow_of_the_eigenvalues():
    spectrum, basis = np.linalg.eigh(COV.numpy())
    a = np.array([0.3, 0.1, 0.2])
    start = Blocks(
        torch.from_numpy(basis * a @ basis.T), torch.tensor([0.7], dtype=torch.float64)
    )
    times = [0.5, 2.0, 10.0]
    flow = gradient_flow(Loss(LIMIT, start, loss_factor=0.5), times, accuracy=1e-9)
    eigenvalues, gains = eigenvalue_flow(spectrum, a, 0.7, times)
    for point, row, gain in zip(flow.parameters, eigenvalues, gains, strict=True):
        expected = Blocks(torch.from_numpy(basis * row @ basis.T), torch.tensor([gain]))
        np.testing.assert_allclose(point.flat(), expected.flat(), atol=1e-6)


def test_balanced_starts_lead_to_the_endpoint():
    loss = Loss(LIMIT, balanced(0.01 * EYE), loss_factor=0.5)
    (end,) = gradient_flow(loss, [200.0], accuracy=1e-8).parameters
    np.testing.assert_allclose(end.flat(), endpoint(COV).flat(), atol=1e-6)
    assert LIMIT.value(loss.merged(endpoint(COV).flat().numpy())) < 1e-14


def test_start_of_opposite_sign_in_one_dimension_leads_to_the_saddle():
    cov = torch.tensor([[1.3]], dtype=torch.float64)
    risk = PolynomialRisk(theory_task(cov))
    start = Blocks(-torch.ones(1, 1).double(), torch.ones(1).double())
    flow = gradient_flow(Loss(risk, start, loss_factor=0.5), [40.0])
    assert abs(flow.flat).max() < 1e-6
    assert_close(flow.risks(risk), np.array([1.3]))  # E (w x_q)^2: nothing is learnt


@pytest.mark.parametrize(
    ("risk", "conserves"),
    [(LIMIT, True), (PolynomialRisk(TASK, 8), True), (softmax_risk(8), False)],
    ids=["limit", "linear", "softmax"],
)
def test_blocks_keep_their_imbalance_in_the_limit_and_for_linear_heads(risk, conserves):
    start = Blocks(0.5 * EYE, torch.tensor([0.4], dtype=torch.float64))
    flow = gradient_flow(Loss(risk, start), [1.0, 5.0], accuracy=1e-9)
    ends = [point for point in flow.parameters if isinstance(point, Blocks)]
    drift = max(abs(end.imbalance - start.imbalance) for end in ends)
    assert (drift < 1e-6) == conserves, drift


def test_separate_matrices_conserve_two_differences_at_any_length():
    start = Separate.draw(DIM, generator(2))
    loss = Loss(softmax_risk(12), start, logit_factor=0.5)
    (end,) = gradient_flow(loss, [5.0], accuracy=1e-9).parameters
    assert isinstance(end, Separate)
    for invariant in (
        lambda p: p.key @ p.key.mT - p.query @ p.query.mT,
        lambda p: p.value @ p.value.mT - p.output.mT @ p.output,
    ):
        np.testing.assert_allclose(invariant(end), invariant(start), atol=1e-6)
    moved = end.key @ end.key.mT - start.key @ start.key.mT
    assert moved.abs().max() > 1e-3, "the flow went somewhere"


def test_descent_tends_to_the_flow_at_first_order():
    loss = Loss(softmax_risk(12), head(3))
    (there,) = gradient_flow(loss, [1.0], accuracy=1e-9).flat
    gaps = [
        np.linalg.norm(
            gradient_descent(loss, step=1 / steps, steps=steps, every=steps).flat[-1]
            - there
        )
        for steps in (200, 400)
    ]
    assert 1.8 < gaps[0] / gaps[1] < 2.2


def test_descent_records_the_start_and_every_few_steps():
    loss = Loss(LIMIT, balanced(EYE))
    walk = gradient_descent(loss, step=0.01, steps=7, every=3)
    np.testing.assert_allclose(walk.times, [0, 0.03, 0.06])
    assert walk.evaluations == 7
    np.testing.assert_allclose(walk.flat[0], balanced(EYE).flat())


def test_merging_and_unmerging_are_inverse():
    vector = np.arange(20.0)
    np.testing.assert_array_equal(merge(*unmerge(vector, DIM)), vector)


def test_wrong_arguments_are_refused():
    loss = Loss(LIMIT, balanced(EYE))
    signs = RegressionTask(EYE, EYE, EYE, 0.1, token_law=TokenLaw.RADEMACHER)
    with pytest.raises(ValueError, match="times must increase"):
        gradient_flow(loss, [1.0, 1.0])
    with pytest.raises(ValueError, match="step must be above 0"):
        gradient_descent(loss, step=0.0, steps=3)
    with pytest.raises(ValueError, match="n must be at least 1; got 0"):
        PolynomialRisk(TASK, 0)
    with pytest.raises(ValueError, match="Gaussian tokens"):
        PolynomialRisk(signs, 5)
    with pytest.raises(ValueError, match="logit variances must be at most 400"):
        softmax_risk(5).logit_variances(100 * flat(head()))
    with pytest.raises(ValueError, match=r"shapes \(d, d\) and \(1,\)"):
        Blocks(torch.zeros(2, 3), torch.zeros(1))
