"""Gaussian laws through layers of attention, finite prompts, and continuous depth."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from largeprompt.attention import Head, attend_tokens, self_attention_moments
from largeprompt.attention import layers_simulation as simulation
from largeprompt.attention.layers import AttentionLayer, gaussian_laws, limit_paths
from largeprompt.attention.layers_flow import ScalarValueFlow, velocity
from largeprompt.attention.layers_simulation import depth_errors, run_layers
from largeprompt.measures import Gaussian
from largeprompt.testing import close, refutes


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draw(*shape, seed=0, size=0.5):
    return size * torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def law(d=3, seed=5):
    root = draw(d, d, seed=seed, size=1.0)
    return Gaussian(draw(d, seed=seed + 1), root @ root.mT / d)


def layer(seed, d=3, heads=2, residual=1.0):
    made = [
        Head(*draw(3, d, d, seed=seed + i).unbind(0), scale=0.4) for i in range(heads)
    ]
    return AttentionLayer(tuple(made), residual)


def scalar_layer(value, form, residual=1.0):
    matrix = lambda x: torch.tensor([[x]], dtype=torch.float64)
    head = Head(matrix(1.0), matrix(form), matrix(value), scale=1.0)
    return AttentionLayer((head,), residual)


def scalar_law(mean, variance):
    as_tensor = lambda x: torch.tensor(x, dtype=torch.float64)
    return Gaussian(as_tensor([mean]), as_tensor([[variance]]))


@pytest.mark.parametrize("residual", [1.0, 0.0])
def test_gaussian_laws_are_those_of_the_moved_tokens(residual):
    """By integration over the law itself: Gauss-Hermite, exact for polynomials."""
    layers, start = [layer(0, 2, residual=residual), layer(9, 2, 1)], law(2)
    nodes, weights = np.polynomial.hermite_e.hermegauss(3)
    grid = torch.tensor([[a, b] for a in nodes for b in nodes])
    mass = torch.tensor([a * b for a in weights for b in weights]) / (2 * math.pi)
    points = start.mean + grid @ torch.linalg.cholesky(start.cov).mT
    for step, (before, after) in enumerate(
        zip(
            gaussian_laws(layers, start)[:-1],
            gaussian_laws(layers, start)[1:],
            strict=True,
        )
    ):
        points = layers[step].output(before, points)
        mean = mass @ points
        close(after.mean, mean)
        close(after.cov, (points - mean).mT * mass @ (points - mean))


def test_a_path_is_one_affine_map_of_the_first_token():
    layers, start = [layer(0), layer(3, heads=1, residual=0.0), layer(7)], law()
    token = draw(4, 3, seed=20)
    laws, paths = gaussian_laws(layers, start), limit_paths(layers, start)
    close(paths[0](token), token)
    for step, before, path in zip(layers, laws[:-1], paths[1:], strict=True):
        token = step.output(before, token)
        close(path(draw(4, 3, seed=20)), token)


@pytest.mark.parametrize("causal", [True, False])
def test_layers_of_a_prompt_are_attention_by_its_definition(monkeypatch, causal):
    monkeypatch.setattr(simulation, "BLOCK", 4)
    layers, tokens = [layer(0), layer(5, residual=0.0)], draw(11, 3, seed=1)
    state = tokens
    for step, after in zip(
        layers, run_layers(layers, tokens, causal=causal)[1:], strict=True
    ):
        mask = torch.ones(11, 11).tril().bool() if causal else None
        heads = [
            attend_tokens(
                state, state, h.key, h.query, h.value, scale=h.scale, mask=mask
            )
            for h in step.heads
        ]
        state = step.residual * state + sum(heads)
        close(after, state)


def test_errors_of_a_prompt_are_those_of_its_tokens():
    layers, start = [layer(0), layer(4)], law()
    errors = depth_errors(layers, start, 20, prompts=2, generator=generator(3), first=5)
    source = generator(3)
    for prompt in range(2):
        tokens = start.sample(20, source)
        state = run_layers(layers, tokens, causal=False)[2]
        path = limit_paths(layers, start)[2](tokens)
        square = (state - path)[5:].square().sum(-1).mean()
        close(errors.path[prompt, 1], square)
        after = gaussian_laws(layers, start)[2]
        close(errors.mean[prompt, 1], (state.mean(0) - after.mean).square().sum())
        close(
            errors.cov[prompt, 1],
            (state.mT.cov(correction=0) - after.cov).square().sum(),
        )
    close(errors.path[:, 0], errors.local[:, 0])  # nothing before the first layer


def first_layer_error(step, start, n):
    """The exact law of the first layer, averaged over the token that asks."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    spread, mean = math.sqrt(float(start.cov)), float(start.mean)
    squares = [
        self_attention_moments(
            step.heads[0], start, torch.tensor([mean + spread * x]), n - 1
        ).mean_square_error
        for x in nodes
    ]
    return float(weights @ squares) / math.sqrt(2 * math.pi)


@pytest.mark.statistical
@pytest.mark.parametrize(("share", "refuted"), [(1.0, False), (0.02, True)])
def test_the_first_layer_errs_as_the_exact_law_of_self_attention(share, refuted, alpha):
    """Markov: the error passes four times its mean in at most a quarter of prompts."""
    step, start, n = scalar_layer(0.8, 0.6), scalar_law(0.5, 0.7), 40
    errors = depth_errors([step], start, n, prompts=300, generator=generator(8))
    claim = share * first_layer_error(step, start, n)
    violations = int((errors.path[:, 0] >= 4 * claim).sum())
    assert refutes(violations, 300, 0.25, alpha) is refuted


@pytest.mark.statistical
def test_longer_prompts_follow_the_limit_more_closely_through_every_layer(alpha):
    """16 times the tokens: 16 times less error; that it falls is refuted by no draw."""
    layers, start = [layer(seed, heads=1) for seed in (0, 3, 6)], law()
    short, long = (
        depth_errors(layers, start, n, prompts=40, generator=generator(n)).path
        for n in (25, 400)
    )
    for step in range(3):
        better = int((long[:, step] < short[:, step]).sum())
        assert refutes(better, 40, 0.5, alpha)  # "no better than a coin" is refuted


def rates(step):
    d = step.dim

    def rate(_, state):
        mean, cov = torch.tensor(state[:d]), torch.tensor(state[d:]).reshape(d, d)
        moved = velocity(step, Gaussian.unchecked(mean, cov))
        return np.concatenate([moved.mean.numpy(), moved.cov.flatten().numpy()])

    return rate


def integrated(step, start, time):
    state = np.concatenate([start.mean.numpy(), start.cov.flatten().numpy()])
    found = solve_ivp(
        rates(step), (0, time), state, method="DOP853", rtol=1e-9, atol=1e-11
    )
    assert found.success
    return found.y[:, -1]


def identity_heads(*pairs, d):
    """Heads with value v I and symmetric bilinear forms."""
    made = []
    for value, seed in pairs:
        root = draw(d, d, seed=seed)
        eye = torch.eye(d, dtype=torch.float64)
        made.append(Head(eye, root + root.mT, value * eye, scale=0.3))
    return AttentionLayer(tuple(made))


@pytest.mark.parametrize("share", [0.3, 0.95])
@pytest.mark.parametrize(
    ("step", "start"),
    [
        (scalar_layer(0.7, 0.9), scalar_law(0.4, 0.5)),
        (identity_heads((0.8, 1), (-0.3, 2), d=3), law()),
    ],
    ids=["one dimension", "two heads in three"],
)
def test_flow_in_closed_form_is_the_integrated_equation(step, start, share):
    flow = ScalarValueFlow(step, start)
    time = share * flow.blow_up_time
    numbers = integrated(step, start, time)
    there = flow.at(time)
    d = step.dim
    np.testing.assert_allclose(there.mean.numpy(), numbers[:d], rtol=1e-6)
    np.testing.assert_allclose(there.cov.flatten().numpy(), numbers[d:], rtol=1e-6)


def test_blow_up_in_one_dimension_is_at_the_time_of_the_formula():
    flow = ScalarValueFlow(scalar_layer(0.7, 0.9), scalar_law(0.4, 0.5))
    assert flow.blow_up_time == pytest.approx(1 / (2 * 0.7 * 0.9 * 0.5))
    variance = lambda gap: float(flow.at(flow.blow_up_time * (1 - gap)).cov)
    assert variance(1e-6) == pytest.approx(0.5e6)
    assert variance(1e-3) == pytest.approx(0.5e3)


def test_attention_that_pulls_tokens_together_never_blows_up():
    flow = ScalarValueFlow(scalar_layer(-0.7, 0.9), scalar_law(0.4, 0.5))
    assert flow.blow_up_time == math.inf
    assert float(flow.at(1e3).cov) == pytest.approx(
        0.5 / (1 + 2 * 0.7 * 0.9 * 0.5 * 1e3)
    )


def test_flow_of_a_form_that_is_not_symmetric_has_its_covariance_alone():
    eye, form = torch.eye(3, dtype=torch.float64), draw(3, 3, seed=4)
    step = AttentionLayer((Head(eye, form, eye, scale=0.5),))
    start = Gaussian(torch.zeros(3, dtype=torch.float64), law().cov)
    flow = ScalarValueFlow(step, start)
    numbers = integrated(step, start, 0.5 * flow.blow_up_time)
    there = flow.at(0.5 * flow.blow_up_time)
    np.testing.assert_allclose(there.cov.flatten().numpy(), numbers[3:], rtol=1e-6)
    with pytest.raises(ValueError, match="symmetric bilinear forms"):
        ScalarValueFlow(step, law()).at(0.1)


def test_small_steps_of_layers_converge_to_the_flow_at_first_order():
    start, time = scalar_law(0.4, 0.5), 1.2
    exact = float(ScalarValueFlow(scalar_layer(0.7, 0.9), start).at(time).cov)

    def error(steps):
        layers = [scalar_layer(0.7 * time / steps, 0.9)] * steps
        return float(gaussian_laws(layers, start)[-1].cov) - exact

    assert error(300) / error(600) == pytest.approx(2, rel=2e-2)
    assert abs(error(600)) < 2e-2 * exact


def test_tokens_of_a_finite_prompt_stay_bounded_beyond_the_blow_up():
    """An output is in the hull of the values: growth is exponential at most."""
    start, steps = scalar_law(0.0, 0.5), 60
    time = 2 * ScalarValueFlow(scalar_layer(0.7, 0.9), start).blow_up_time
    layers = [scalar_layer(0.7 * time / steps, 0.9)] * steps
    tokens = start.sample(50, generator(1))
    states = run_layers(layers, tokens, causal=False)
    for step, state in enumerate(states):
        assert state.abs().max() <= tokens.abs().max() * (
            1 + 0.7 * time / steps
        ) ** step * (1 + 1e-12)
    law_there = float(gaussian_laws(layers, start)[-1].cov)
    assert law_there > 1e3 * float(states[-1].var())  # the limit does not see the hull


def test_layers_that_do_not_fit_are_refused():
    narrow = Head(draw(2, 3), draw(2, 3), draw(2, 3), scale=1.0)
    with pytest.raises(ValueError, match="must be of one dimension; got"):
        AttentionLayer((narrow,))
    with pytest.raises(ValueError, match="heads must be at least one"):
        AttentionLayer(())
    with pytest.raises(ValueError, match="must be of the layer's dimension 3; got 2"):
        ScalarValueFlow(identity_heads((1.0, 0), d=3), law(2))
    with pytest.raises(ValueError, match="multiples of the identity"):
        ScalarValueFlow(layer(0), law())
    flow = ScalarValueFlow(scalar_layer(1.0, 1.0), scalar_law(0.0, 0.5))
    with pytest.raises(ValueError, match=r"time must be from 0 to before 1; got 1"):
        flow.at(1.0)
    with pytest.raises(ValueError, match="a token that counts; got 1 layers"):
        depth_errors([layer(0)], law(), 4, prompts=1, generator=generator(), first=4)
