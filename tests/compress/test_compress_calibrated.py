"""The default method: bytes, what it keeps, what it answers, and what breaks it."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from largeprompt.compress.calibrated import CalibratedLimit
from largeprompt.compress.compact import Compact
from largeprompt.compress.prompt import LayerPrompt
from largeprompt.compress.sets import LinearSets

METHOD = CalibratedLimit(sinks=2, window=5, rank=4, queries=32, ahead=(8, 16))
FULL = dataclasses.replace(METHOD, rank=8)  # every direction of the keys
SMALLEST = 30.0  # above what METHOD always keeps at k + v = 14, two query heads


def still(query, positions):
    """A rotation of a model without positions."""
    return query


def make(
    seed: int = 0,
    n: int = 300,
    dtype: torch.dtype = torch.float32,
    scale: float = 1.0,
    heads: int = 2,
    padding: int = 0,
) -> LayerPrompt:
    """Gaussian keys, values partly linear in them, Gaussian queries: k 8, v 6, g 2."""
    generator = torch.Generator().manual_seed(seed)
    key = torch.randn(heads, n, 8, generator=generator)
    mix = torch.randn(8, 6, generator=generator) / 3
    noise = torch.randn(heads, n, 6, generator=generator)
    query = torch.randn(heads, 2, 48, 8, generator=generator)
    valid = torch.ones(heads, n, dtype=torch.bool)
    valid[0, :padding] = False
    return LayerPrompt(
        key=key.to(dtype),
        value=(key @ mix + noise).to(dtype),
        valid=valid,
        query=(scale * query).to(dtype),
        scale=0.35,
        rotate=still,
    )


def exact(prompt: LayerPrompt, tilt):
    """The definition in float64, over the valid tokens."""
    logits = tilt.double() @ prompt.key[:, None].double().mT
    logits = logits.masked_fill(~prompt.valid[:, None, None], -torch.inf)
    value = prompt.value.double().masked_fill(~prompt.valid[..., None], 0)
    return logits.logsumexp(-1), logits.softmax(-1) @ value[:, None]


def error(compact: Compact, prompt: LayerPrompt, tilt) -> float:
    answer, (_, truth) = compact.answer(tilt), exact(prompt, tilt)
    return float(((answer.output - truth).norm(dim=-1) / truth.norm(dim=-1)).median())


def fresh(prompt: LayerPrompt, seed: int = 9):
    generator = torch.Generator().manual_seed(seed)
    return prompt.scale * torch.randn(prompt.query.shape, generator=generator)


def head_bytes(compact: Compact, head: int) -> float:
    """What one KV head holds: its atoms, its rows of `starts` and its sets."""
    key, value = compact.atoms.of(head)
    sets = 0 if compact.sets is None else compact.sets.nbytes / len(compact.sets.base)
    return key.nbytes + value.nbytes + 8 * (1 + 1 / len(compact.atoms.starts)) + sets


@given(
    budgets=st.lists(st.floats(SMALLEST * 2, 299), min_size=2, max_size=2),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    seed=st.integers(0, 2**31),
)
@settings(max_examples=15)
def test_calibrated_limit_never_holds_more_than_its_budget(budgets, dtype, seed):
    prompt = make(seed, dtype=dtype)
    compact = METHOD.compress(prompt, torch.tensor(budgets))
    token = 14 * prompt.key.element_size()
    for head, budget in enumerate(budgets):
        assert head_bytes(compact, head) <= budget * token
        assert head_bytes(compact, head) > (budget - 2) * token  # and wastes little
    assert compact.atoms.key.dtype == dtype
    assert compact.sets is not None
    for field in dataclasses.fields(LinearSets):
        assert getattr(compact.sets, field.name).dtype == torch.float32


def test_gaussian_tokens_are_answered_better_than_by_the_kept_tokens_alone():
    prompt = make(n=3000)
    tilt = fresh(prompt)
    compact = FULL.compress(prompt, torch.full((2,), 150.0))
    ours = error(compact, prompt, tilt)
    atoms = error(dataclasses.replace(compact, sets=None), prompt, tilt)
    assert ours < 0.25 * atoms


def test_responses_of_the_wrong_sign_are_seen_by_the_error():
    prompt = make(n=3000)
    tilt = fresh(prompt)
    compact = FULL.compress(prompt, torch.full((2,), 150.0))
    assert compact.sets is not None
    wrong = dataclasses.replace(compact.sets, responses=-compact.sets.responses)
    faulty = dataclasses.replace(compact, sets=wrong)
    assert error(faulty, prompt, tilt) > 2 * error(compact, prompt, tilt)


def test_a_budget_of_all_tokens_is_exact_and_holds_no_set():
    prompt = make(padding=20)
    compact = METHOD.compress(prompt, torch.tensor([280.0, 300.0]))
    assert compact.sets is None
    answer, (mass, output) = compact.answer(fresh(prompt)), exact(prompt, fresh(prompt))
    torch.testing.assert_close(answer.log_mass.double(), mass, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(answer.output.double(), output, rtol=1e-4, atol=1e-5)


def test_an_exact_head_beside_a_compressed_one_stays_exact():
    prompt = make()
    compact = METHOD.compress(prompt, torch.tensor([300.0, 100.0]))
    tilt = fresh(prompt)
    output = compact.answer(tilt).output[0].double()
    torch.testing.assert_close(output, exact(prompt, tilt)[1][0], rtol=1e-4, atol=1e-5)


def test_padding_is_no_token_whatever_it_holds():
    prompt = make(padding=40)
    clean = METHOD.compress(prompt, torch.full((2,), 80.0))
    key, value = prompt.key.clone(), prompt.value.clone()
    key[0, :40], value[0, :40] = torch.inf, torch.nan
    dirty = dataclasses.replace(prompt, key=key, value=value)
    again = METHOD.compress(dirty, torch.full((2,), 80.0))
    tilt = fresh(prompt)
    torch.testing.assert_close(again.answer(tilt).output, clean.answer(tilt).output)
    first, _ = again.atoms.of(0)
    torch.testing.assert_close(first[:2], prompt.key[0, 40:42])  # sinks: first valid


def test_the_ends_of_the_prompt_are_always_kept():
    prompt = make()
    compact = METHOD.compress(prompt, torch.full((2,), 60.0))
    key, value = compact.atoms.of(1)
    torch.testing.assert_close(key[:2], prompt.key[1, :2])
    torch.testing.assert_close(value[-5:], prompt.value[1, -5:])


def test_a_token_that_queries_look_for_is_kept():
    prompt = make()
    prompt.key[1, 123] = 4 * prompt.query[1].mean((0, 1)) + prompt.query[1, 0, -1] * 3
    compact = METHOD.compress(prompt, torch.full((2,), 60.0))
    key, _ = compact.atoms.of(1)
    assert (key == prompt.key[1, 123]).all(-1).any()


def test_a_key_channel_with_a_large_bias_does_no_harm():
    prompt = make(n=2000)
    biased = dataclasses.replace(prompt, key=prompt.key.clone())
    biased.key[:, :, 3] += 300
    budget = torch.full((2,), 150.0)
    plain = error(METHOD.compress(prompt, budget), prompt, fresh(prompt))
    outlier = error(METHOD.compress(biased, budget), biased, fresh(biased))
    assert outlier < 1.5 * plain


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_compressed_as_well_as_float32(dtype):
    budget = torch.full((2,), 300.0)
    low = make(n=2000, dtype=dtype)
    wide = dataclasses.replace(
        low, key=low.key.float(), value=low.value.float(), query=low.query.float()
    )
    ours = error(METHOD.compress(low, budget), wide, fresh(wide))
    # half the bytes a token leave fewer atoms beside float32 statistics
    reference = error(METHOD.compress(wide, budget - SMALLEST), wide, fresh(wide))
    assert ours < 1.2 * reference


def test_queries_that_cannot_be_moved_do_not_look_at_tokens_after_them():
    prompt = dataclasses.replace(make(n=400), rotate=None)
    prompt.key[:, 360] = 50 * torch.sign(prompt.query[:, 0, 0])  # later than query 0
    compact = METHOD.compress(prompt, torch.full((2,), 80.0))
    assert torch.isfinite(compact.answer(fresh(prompt)).output).all()


def test_tokens_that_are_all_alike_are_answered_exactly():
    prompt = make()
    prompt.key[:], prompt.value[:] = 0.5, 2.0
    compact = METHOD.compress(prompt, torch.full((2,), 60.0))
    assert error(compact, prompt, fresh(prompt)) < 1e-4


def test_a_budget_below_what_is_always_kept_is_refused():
    with pytest.raises(ValueError, match="needs a budget of at least"):
        METHOD.compress(make(), torch.full((2,), 8.0))
