"""Several heads: joint moments, the definition, opposite heads, published values."""

import math

import pytest
import torch

from largeprompt.icl import (
    MultiheadRisk,
    RegressionTask,
    head_overlap,
    law_functions,
    limit_risk,
    multihead_risk,
    population_risk,
    preset,
    softmax_prediction,
)
from largeprompt.icl.cases import Cases
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
PUBLISHED = {10: 0.60392, 20: 0.36748, 40: 0.24304, 100: 0.16376}  # He et al. (2025)
SIMULATED = {10: 0.5969, 20: 0.3682, 40: 0.2433, 100: 0.1651}  # 10^6 prompts


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def heads(count: int, dim: int, size: float, seed: int = 1):
    draws = generator(seed)
    draw = lambda *shape: torch.randn(*shape, generator=draws, dtype=torch.float64)
    return size * draw(count, dim + 1, dim + 1), draw(count, dim + 1)


def opposite(omega: float, mu: float, dim: int):
    form = torch.zeros(dim + 1, dim + 1, dtype=torch.float64)
    form[:dim, :dim] = omega * torch.eye(dim)
    row = torch.zeros(dim + 1, dtype=torch.float64)
    row[-1] = mu
    return torch.stack([form, -form]), torch.stack([row, -row])


def assert_agree(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """To the accuracy that head_overlap promises, relative to numbers of order one."""
    torch.testing.assert_close(actual, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 10, 200, 1e6])
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_head_overlaps_itself_as_the_exact_law_says(n, scale, sign):
    s = tensor([scale])
    overlap = head_overlap(n, s, sign * s, tensor([1e-5]))
    if sign > 0:
        law = gaussian_law(n, scale**2)
        along = law.parallel_mse + scale**2 * (1 - 2 * law.inverse_ess)
        assert_agree(overlap.shared[0], tensor(float(law.inverse_ess)))
        assert_agree(overlap.moment[0, 0, 0], tensor(float(along)))
        assert_agree(overlap.moment[0, 1, 1], tensor(float(law.inverse_ess)))
    else:
        assert 0 < overlap.shared[0] <= 1 / n + 1e-8  # opposite weights hardly meet


@pytest.mark.parametrize("along", [-0.6, 0.4])
@pytest.mark.parametrize("across", [1e-5, 0.3, 0.8])
def test_head_overlap_is_the_average_over_every_pair_of_tokens(along, across):
    nodes, weights = product([normal_rule(30)] * 4)
    tokens = nodes.unflatten(-1, (2, 2))  # prompt, token, (g, h)
    first = torch.softmax(0.7 * tokens[..., 0], -1)
    second = torch.softmax(tokens @ tensor([along, across]), -1)
    outer = torch.einsum("pi,pia,pj,pjb->pab", first, tokens, second, tokens)
    overlap = head_overlap(2, tensor([0.7]), tensor([along]), tensor([across]))
    assert_agree(overlap.shared[0], weights @ (first * second).sum(-1))
    assert_agree(overlap.moment[0], torch.einsum("p,pab->ab", weights, outer))


def test_head_overlap_does_not_depend_on_which_head_is_first():
    s, along, across = 0.8, 0.5, 0.9
    other = math.hypot(along, across)
    cosine = along / other
    forth = head_overlap(9, tensor([s]), tensor([along]), tensor([across]))
    back = head_overlap(
        9, tensor([other]), tensor([s * cosine]), tensor([s * across / other])
    )
    sine = across / other
    turn = tensor([[cosine, sine], [sine, -cosine]])
    assert_agree(forth.shared, back.shared)
    assert_agree(forth.moment[0], (turn @ back.moment[0] @ turn.mT).mT)


def test_head_overlap_answers_many_pairs_as_it_answers_each():
    first = tensor([0.2, 1.4, 0.9, 2.0] * 6)
    along = tensor([0.1, -1.0, 0.7, 0.0] * 6)
    across = tensor([1e-5, 0.2, 0.9, 2.5] * 6)
    together = head_overlap(30, first, along, across)
    for k in range(4):
        alone = head_overlap(30, first[k, None], along[k, None], across[k, None])
        assert_agree(together.shared[k + 4], alone.shared[0])
        assert_agree(together.moment[k + 4], alone.moment[0])


def risk_of_a_case(task, n, w, x_query) -> MultiheadRisk:
    root = torch.linalg.cholesky(task.token_cov)
    noise = math.sqrt(task.noise_variance)
    cases = Cases(root, noise, w.reshape(1, 1, -1), x_query.reshape(1, 1, -1))
    return MultiheadRisk(task, law_functions(n), cases)


@pytest.mark.parametrize(
    ("bilinear", "value"),
    [heads(2, 1, 0.3), heads(3, 1, 0.3), opposite(0.5, 2.0, 1)],
    ids=["two", "three", "opposite"],
)
def test_risk_given_a_case_is_the_average_over_every_prompt(bilinear, value):
    w, x_query = tensor([0.7]), tensor([-0.9])
    prompts, weights = prompts_of_a_case(LINE, w, x_query, 2, 30)
    prediction = softmax_prediction(prompts, bilinear, value)
    theirs = square_error(prompts, weights, prediction, LINE)
    risk = risk_of_a_case(LINE, 2, w, x_query)
    ours = risk.given_cases(bilinear, value)[0, 0]
    assert_agree(ours, theirs)
    pairs = zip(bilinear, value, strict=True)
    alone = [law_of_one(LINE, w, x_query, b, v) for b, v in pairs]
    assert abs(float(ours - sum(alone))) > 1e-3  # cross terms matter


def law_of_one(task, w, x_query, bilinear, value) -> torch.Tensor:
    risk = risk_of_a_case(task, 2, w, x_query)
    return risk.given_cases(bilinear[None], value[None])[0, 0]


def test_one_head_is_the_single_head_risk():
    task = preset("paper-intended").task
    bilinear, value = heads(1, 5, 0.2)
    many = multihead_risk(task, 12, generator(), count=16)
    one = population_risk(task, 12, generator(), count=16)
    close(many.given_cases(bilinear, value), one.given_cases(bilinear[0], value[0]))


def test_risk_at_infinity_is_the_limit_of_summed_heads():
    bilinear, value = heads(2, 5, 0.2)
    task = preset("paper-intended").task
    risk = multihead_risk(task, math.inf, generator(), count=2)
    close(risk(bilinear, value), limit_risk(task, bilinear, value))
    twice = limit_risk(task, bilinear[:1].expand(2, -1, -1), value[:1].expand(2, -1))
    close(twice, limit_risk(task, bilinear[0], 2 * value[0]))


@pytest.mark.parametrize("n", PUBLISHED)
def test_opposite_heads_have_the_published_risk(n):
    risk = multihead_risk(preset("he-et-al").task, n, generator(), count=64)
    estimate = risk.estimate(*opposite(0.13, 3.45, 5))
    assert estimate.relative_error < 0.005
    assert estimate.value == pytest.approx(PUBLISHED[n], rel=0.02)
    assert estimate.value == pytest.approx(SIMULATED[n], rel=0.005)


def test_risk_of_two_heads_differentiates():
    risk = multihead_risk(LINE, 6, generator(), count=2, replicates=1)
    arguments = tuple(t.requires_grad_() for t in heads(2, 1, 0.3))
    assert torch.autograd.gradcheck(risk, arguments, rtol=1e-4, atol=1e-6)


def test_risk_of_opposite_heads_differentiates():
    risk = multihead_risk(LINE, 6, generator(), count=2, replicates=1)
    bilinear, value = (t.requires_grad_() for t in opposite(0.4, 1.1, 1))
    gradients = torch.autograd.grad(risk(bilinear, value), (bilinear, value))
    shift = 1e-3
    for argument, gradient in zip((bilinear, value), gradients, strict=True):
        for place in range(argument.numel()):
            step = torch.zeros_like(argument).ravel()
            step[place] = shift
            step = step.reshape(argument.shape)
            ends = [
                risk(
                    *(
                        (t + sign * step) if t is argument else t
                        for t in (bilinear, value)
                    )
                )
                for sign in (1, -1)
            ]
            slope = (ends[0] - ends[1]) / (2 * shift)
            torch.testing.assert_close(
                gradient.ravel()[place], slope.detach(), rtol=1e-4, atol=1e-5
            )


def test_head_overlap_refuses_lengths_beyond_its_accuracy():
    one = tensor([1.0])
    for n in (0.5, 1e8):
        with pytest.raises(ValueError, match="n must be a number from 1 to 1e"):
            head_overlap(n, one, one, one)
