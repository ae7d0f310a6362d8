"""Budgets go where they lower the error, and what does not compress is kept."""

import dataclasses
import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_compress_calibrated import METHOD, make

from largeprompt.compress.held_out import HeldOut
from largeprompt.compress.policy import ErrorCurves, error_curves, held_out_errors


def curves(seed: int, heads: int = 3) -> ErrorCurves:
    generator = torch.Generator().manual_seed(seed)
    error = torch.rand(heads, 4, generator=generator).sort(descending=True).values
    error = torch.cat([error, torch.zeros(heads, 1)], 1)
    budget = torch.tensor([10.0, 20.0, 40.0, 80.0, 200.0]).expand(heads, 5)
    return ErrorCurves(budget, error)


def on_the_hull(x, y) -> list[int]:
    """Corners of the lower convex hull: no chord of the curve lies below them."""
    return [
        i
        for i in range(len(x))
        if all(
            y[i] < y[a] + (y[b] - y[a]) * (x[i] - x[a]) / (x[b] - x[a]) - 1e-9
            for a in range(i)
            for b in range(i + 1, len(x))
        )
    ]


@given(seed=st.integers(0, 2**31), total=st.floats(30, 600))
def test_shared_budgets_are_the_best_choice_of_their_sum(seed, total):
    """Oracle: every combination of corners."""
    found = curves(seed)
    weight = torch.tensor([1.0, 3.0, 0.2])
    shared = found.sharing(total, weight)
    assert float(shared.sum()) <= total + 1e-3

    def cost(places) -> float:
        errors = found.error[torch.arange(3), torch.tensor(places)]
        return float((weight * errors.square()).sum())

    square = found.error.square()
    corners = [
        on_the_hull(found.budget[h].tolist(), square[h].tolist()) for h in range(3)
    ]
    mine = [int((found.budget[h] == shared[h]).nonzero()[0]) for h in range(3)]
    spent = float(shared.sum())
    rivals = [
        cost(places)
        for places in itertools.product(*corners)
        if sum(float(found.budget[h, p]) for h, p in enumerate(places)) <= spent
    ]
    first_steps = cost(mine) - min(rivals)
    assert first_steps <= slack(found, weight, spent, corners)


def slack(found: ErrorCurves, weight, spent: float, corners) -> float:
    """What a knapsack may lose to the hull: at most one step's gain."""
    gains = [0.0]
    for h, places in enumerate(corners):
        square = weight[h] * found.error[h].square()
        gains += [float(square[a] - square[b]) for a, b in itertools.pairwise(places)]
    return max(gains) + 1e-6


def test_equal_shares_lose_to_shared_budgets_where_heads_differ():
    budget = torch.tensor([[10.0, 50.0, 100.0, 1000.0]]).expand(2, 4)
    error = torch.tensor([[0.01, 0.009, 0.008, 0], [0.9, 0.5, 0.1, 0]])
    shared = ErrorCurves(budget, error).sharing(110.0)
    assert shared.tolist() == [10.0, 100.0]


def test_a_head_that_gains_nothing_until_it_is_whole_is_kept_exact():
    budget = torch.tensor([[10.0, 50.0, 100.0, 400.0]]).expand(2, 4)
    error = torch.tensor([[0.01, 0.009, 0.008, 0], [0.9, 0.9, 0.9, 0]])
    assert ErrorCurves(budget, error).sharing(440.0).tolist() == [10.0, 400.0]
    assert ErrorCurves(budget, error).meeting(0.05).tolist() == [10.0, 400.0]


def test_smallest_budgets_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="3 heads need 30 tokens; got 29"):
        curves(0).sharing(29.0)


def test_a_head_whose_answer_sits_in_one_token_is_kept_and_a_linear_head_is_not():
    """Head 0: every query has its own token. Head 1: Gaussian tokens."""
    prompt = make(n=600)
    generator = torch.Generator().manual_seed(4)
    own = 50 + torch.randperm(500, generator=generator)[:96]  # long before the queries
    looked_for = prompt.query[0].flatten(0, 1)
    prompt.key[0, own] = 60 * torch.nn.functional.normalize(looked_for, dim=-1)
    medians = error_curves(METHOD, prompt, [0.12, 0.15], 16, HeldOut.median)
    assert medians.meeting(0.5)[0] == 600
    assert medians.meeting(0.5)[1] < 600
    found = error_curves(METHOD, prompt, [0.12, 0.15], held=16)
    assert found.sharing(600 + 0.15 * 600 + 1)[0] == 600


def test_held_out_errors_compare_with_attention_over_the_whole_prompt():
    prompt = make(n=400, padding=30)
    errors = held_out_errors(METHOD, prompt, torch.tensor([370.0, 384.0]), held=16)
    assert errors.shape == (2, 2, 16)
    assert float(errors.max()) < 1e-5  # budgets of everything: nothing is lost
    errors = held_out_errors(METHOD, prompt, torch.full((2,), 60.0), held=16)
    assert float(errors.median()) > 1e-3


def test_held_out_queries_are_not_calibrated_on():
    prompt = make(n=400)
    other = dataclasses.replace(prompt, query=prompt.query.clone())
    other.query[:, :, -16:] += 5
    budget = torch.full((2,), 60.0)
    seen = held_out_errors(METHOD, prompt, budget, held=16)
    assert not torch.allclose(held_out_errors(METHOD, other, budget, held=16), seen)
    other.query[:, :, -16:] -= 5
    again = held_out_errors(METHOD, other, budget, held=16)
    torch.testing.assert_close(again, seen, rtol=1e-3, atol=1e-4)


def test_too_few_queries_to_hold_out_are_refused():
    with pytest.raises(ValueError, match="more than 48 queries are needed"):
        held_out_errors(METHOD, make(), torch.full((2,), 60.0), held=48)


def test_damage_sees_a_rare_failure_that_the_median_does_not():
    """One query in fifty of head 0 fails; every query of head 1 is one per cent off."""
    truth = torch.ones(2, 1, 50, 4)
    guess = truth.clone()
    guess[0, 0, 3] = -1
    guess[1] *= 1.01
    found = HeldOut(guess, truth)
    assert found.median().tolist() == pytest.approx([0, 0.01], abs=1e-6)
    # the squares by hand: 4 * 4 / 50 and 4 * 1e-4, over 8
    expected = [(16 / 50 / 8) ** 0.5, (4e-4 / 8) ** 0.5]
    assert found.damage().tolist() == pytest.approx(expected, rel=1e-4)
