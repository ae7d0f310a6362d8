"""Several budgets at once: the same answers as one after the other, in one pass."""

import dataclasses

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from largeprompt.compress.calibrated import CalibratedLimit
from largeprompt.compress.calibration import Sight, look
from largeprompt.compress.held_out import held_out, held_out_each
from largeprompt.compress.prompt import LayerPrompt
from largeprompt.compress.sets import LinearSets

METHOD = CalibratedLimit(sinks=2, window=5, rank=4, queries=32, ahead=(8, 16))


def sight(n: int, seed: int, spread: float = 1.0) -> tuple[Sight, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    tilt = spread * torch.randn(2, 5, 4, generator=generator)
    key = torch.randn(n, 4, generator=generator)
    return look(tilt, key, None), torch.randn(n, 3, generator=generator)


def layer(padding: int) -> LayerPrompt:
    generator = torch.Generator().manual_seed(3)
    valid = torch.ones(2, 200, dtype=torch.bool)
    valid[0, :padding] = False
    return LayerPrompt(
        key=torch.randn(2, 200, 8, generator=generator),
        value=torch.randn(2, 200, 6, generator=generator),
        valid=valid,
        query=torch.randn(2, 2, 48, 8, generator=generator),
        scale=0.35,
        rotate=lambda query, positions: query,
    )


@settings(max_examples=30, deadline=None)
@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=4).map(sorted),
    seed=st.integers(0, 99),
)
def test_nested_answers_are_those_of_each_set_by_itself(counts, seed):
    seen, value = sight(40, seed)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(seed))
    for count, answers in zip(counts, seen.nested(order, counts, value), strict=True):
        inside = torch.zeros(40, dtype=torch.bool).index_fill(0, order[:count], True)
        for answer, members in zip(answers, (inside, ~inside), strict=True):
            alone = seen.of(members, value)
            torch.testing.assert_close(answer.log_mass, alone.log_mass)
            torch.testing.assert_close(answer.output, alone.output)


def test_a_set_of_little_mass_keeps_its_digits():
    seen, value = sight(400, 0, spread=12.0)
    order = seen.weight.amax(1).sort(descending=True).indices
    ((_, rest),) = seen.nested(order, [300], value)
    exact = Sight(seen.peak.double(), seen.weight.double())
    ((_, truth),) = exact.nested(order, [300], value.double())
    assert float(truth.log_mass.min()) < float(seen.peak.min()) - 8  # little indeed
    torch.testing.assert_close(rest.output.double(), truth.output, rtol=1e-4, atol=1e-4)
    rough = seen.weight.sum(0) - seen.weight[order[:300]].sum(0)  # the planted shortcut
    off = rough.clamp_min(1e-30).log().view(2, 5) + seen.peak - truth.log_mass
    assert float(off.abs().max()) > 0.01


def test_budgets_at_once_leave_what_each_leaves():
    for prompt in (layer(0), layer(60)):
        budgets = [
            torch.tensor(pair) for pair in ([35.0, 40.0], [60.0, 60.0], [400.0, 90.0])
        ]
        for budget, together in zip(
            budgets, METHOD.compress_each(prompt, budgets), strict=True
        ):
            alone = METHOD.compress(prompt, budget)
            assert torch.equal(together.atoms.key, alone.atoms.key)
            assert torch.equal(together.atoms.starts, alone.atoms.starts)
            for field in dataclasses.fields(LinearSets):
                a, b = (getattr(one.sets, field.name) for one in (together, alone))
                torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def test_held_out_errors_at_once_are_those_of_each_budget():
    prompt = layer(0)
    budgets = [torch.tensor([35.0, 40.0]), torch.tensor([60.0, 150.0])]
    for budget, together in zip(
        budgets, held_out_each(METHOD, prompt, budgets, 16), strict=True
    ):
        alone = held_out(METHOD, prompt, budget, 16)
        torch.testing.assert_close(
            together.damage(), alone.damage(), rtol=1e-3, atol=1e-5
        )
        assert torch.equal(together.truth, alone.truth)
