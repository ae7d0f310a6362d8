"""The evaluation of compression, against definitions and a model's own answers."""

import dataclasses
import math

import pytest
import torch

from largeprompt.compress.baselines import OrderOneMoments, SinksAndWindow, SnapKV
from largeprompt.compress.calibrated import CalibratedLimit
from largeprompt.compress.compact import Compact
from largeprompt.errors import CacheError, TextError
from largeprompt.hf.evaluation import evaluate_compression
from largeprompt.hf.evaluation_cell import compressed_cell, exact_cell
from largeprompt.hf.evaluation_distance import distance
from largeprompt.hf.evaluation_errors import (
    head_bytes,
    median_over_queries,
    relative_errors,
)
from largeprompt.hf.evaluation_memory import prefill_peak_bytes
from largeprompt.hf.evaluation_methods import METHODS, chosen_methods
from largeprompt.hf.evaluation_passkey import PASSKEY, hidden
from largeprompt.hf.evaluation_plan import EvaluationPlan
from largeprompt.hf.evaluation_reading import read
from largeprompt.hf.evaluation_result import CompressionResult
from largeprompt.hf.evaluation_store import CellStore
from largeprompt.hf.models import ModelDescription
from largeprompt.hf.texts import Text
from tests.hf.tiny import tiny_model, tiny_tokenizer, tokens

N, PROMPT = 96, 70
WORDS = "Softmax over a long prompt is an operator on the law of its tokens. " * 9


@pytest.fixture(scope="module")
def model():
    return tiny_model("llama")


@pytest.fixture(scope="module")
def reading(model):
    return read(model, tokens(N), PROMPT, queries=16)


def test_reading_sees_the_models_own_next_tokens(model, reading):
    with torch.inference_mode():
        logits = model(input_ids=tokens(N)[None]).logits[0, PROMPT:]
    assert torch.equal(reading.log_probabilities, logits.log_softmax(-1))
    assert reading.layers[0].query.shape[1] == 16 + N - PROMPT


def test_layer_prompt_ends_where_the_continuation_begins(model, reading):
    given = reading.layer_prompt(model, 1)
    assert given.key.shape == (2, PROMPT, 10)
    assert torch.equal(given.key, reading.layers[1].key[:, :PROMPT])
    first = reading.layers[1].query[:, :16].unflatten(0, (2, 3))
    assert torch.equal(given.query, first)


def test_distance_is_the_definition():
    generator = torch.Generator().manual_seed(0)
    exact, logits = (torch.randn(70, 11, generator=generator) for _ in range(2))
    ids = torch.randint(0, 11, (70,), generator=generator)
    found = distance(exact.log_softmax(-1), logits, ids)
    p, q = exact.double().softmax(-1), logits.double().softmax(-1)
    kl = sum(
        p[i, j] * math.log(p[i, j] / q[i, j]) for i in range(70) for j in range(11)
    )
    assert found.kl == pytest.approx(float(kl) / 70, rel=1e-5)
    picked = [math.log(q[i, ids[i + 1]]) for i in range(69)]
    assert found.nll == pytest.approx(-sum(picked) / 69, rel=1e-5)
    same = [int(p[i].argmax() == q[i].argmax()) for i in range(70)]
    assert found.top1 == pytest.approx(sum(same) / 70)
    right = [int(q[i].argmax() == ids[i + 1]) for i in range(69)]
    assert found.accuracy == pytest.approx(sum(right) / 69)


def test_distance_of_a_distribution_to_itself_is_zero(reading):
    found = distance(
        reading.log_probabilities, reading.log_probabilities, reading.continuation
    )
    assert found.kl == pytest.approx(0, abs=1e-6)
    assert found.top1 == 1


def test_head_errors_are_those_of_attention_over_the_tokens_kept(model, reading):
    given = reading.layer_prompt(model, 1)
    compact = SinksAndWindow(sinks=3).compress(given, torch.full((2,), 20.9))
    errors = relative_errors(reading, 1, compact)
    kept = [*range(3), *range(PROMPT - 17, PROMPT)]
    layer = reading.layers[1]
    for head in range(6):
        key, value = layer.key[head // 3].double(), layer.value[head // 3].double()
        for i in range(N - PROMPT):
            q = layer.scale * layer.query[head, 16 + i].double()
            seen = [*range(PROMPT + i + 1)]
            some = [*kept, *range(PROMPT, PROMPT + i + 1)]
            exact, ours = (
                (q @ key[rows].mT).softmax(-1) @ value[rows] for rows in (seen, some)
            )
            expected = float((ours - exact).norm() / exact.norm())
            assert float(errors[head, i]) == pytest.approx(expected, rel=1e-3)


def test_head_errors_vanish_where_every_token_is_kept(model, reading):
    compact = SnapKV().compress(
        reading.layer_prompt(model, 0), torch.full((2,), float(PROMPT))
    )
    assert float(relative_errors(reading, 0, compact).max()) < 1e-5


def test_median_is_taken_over_queries_and_the_mean_over_query_heads():
    errors = torch.tensor([[1.0, 9.0, 2.0], [3.0, 4.0, 50.0], [0.0, 0.0, 1.0]] * 2)
    assert median_over_queries(errors, 2).tolist() == [2.0, 2.0]


def test_bytes_of_heads_add_up(model, reading):
    compact = OrderOneMoments(window=4).compress(
        reading.layer_prompt(model, 0), torch.tensor([45.0, 60.0])
    )
    assert isinstance(compact, Compact)
    held = head_bytes(compact, 2)
    assert sum(held) == pytest.approx(compact.nbytes)
    assert held[1] - held[0] == 15 * 20 * 4


def test_a_cell_of_nearly_the_whole_budget_is_close_to_exact(model, reading):
    cell = compressed_cell(model, reading, "snapkv", SnapKV(window=8), 0.98, 8)
    less = compressed_cell(model, reading, "snapkv", SnapKV(window=8), 0.4, 8)
    assert cell.summary["kl"] < less.summary["kl"] / 3
    assert cell.summary["mean_error"] < less.summary["mean_error"] / 3
    assert cell.summary["bytes"] == sum(row["bytes"] for row in cell.errors)
    assert len(cell.errors) == 3 * 2  # layers, KV heads
    exact = exact_cell(model, reading)
    assert exact.summary["kl"] == pytest.approx(0, abs=1e-6)
    assert exact.summary["bytes"] == 3 * 2 * PROMPT * 20 * 4
    assert less.summary["bytes"] <= 0.4 * exact.summary["bytes"]


def test_what_follows_the_prompt_does_not_change_what_is_kept(model):
    """A method that saw the continuation would keep other tokens for another one."""
    one, other = tokens(N), tokens(N)
    other[PROMPT:] = 7
    compacts = [
        CalibratedLimit().compress(
            read(model, ids, PROMPT, 16).layer_prompt(model, 2), torch.full((2,), 66.0)
        )
        for ids in (one, other)
    ]
    torch.testing.assert_close(compacts[0].atoms.key, compacts[1].atoms.key)


def test_sliding_layers_are_left_out_of_errors_and_bytes():
    gemma = tiny_model("gemma3")
    found = read(gemma, tokens(N), PROMPT, 16)
    cell = compressed_cell(gemma, found, "snapkv", SnapKV(window=8), 0.5, 8)
    assert {row["layer"] for row in cell.errors} == {1}
    assert exact_cell(gemma, found).summary["bytes"] == 2 * PROMPT * 20 * 4
    assert exact_cell(gemma, found).summary["kl"] == pytest.approx(0, abs=1e-5)


def test_a_budget_too_small_names_the_method(model, reading):
    with pytest.raises(CacheError, match=r"snapkv: .* too small"):
        compressed_cell(model, reading, "snapkv", SnapKV(), 0.1, 8)
    with pytest.raises(CacheError, match=r"performer: 0.1 is too small a budget"):
        compressed_cell(model, reading, "performer", METHODS["performer"], 0.1, 8)


def test_methods_are_chosen_by_name_and_the_nearest_is_suggested():
    assert list(chosen_methods(["tova", "snapkv"])) == ["tova", "snapkv"]
    with pytest.raises(ValueError, match="did you mean 'snapkv'"):
        chosen_methods(["snap-kv"])
    with pytest.raises(ValueError, match="known: shared, calibrated"):
        chosen_methods(["zzz"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budgets": (1.0,)}, "budgets must be between 0 and 1; got 1.0"),
        ({"budgets": ()}, "a budget at least"),
        ({"budgets": (0.1, 0.1)}, "budgets must differ"),
        ({"passkey_depths": (1.5,)}, "depths must be between 0 and 1"),
        ({"continuation": 1}, "continuation must be at least 2; got 1"),
        ({"prompt_tokens": 1}, "prompt tokens must be at least 2; got 1"),
    ],
)
def test_a_plan_refuses_what_cannot_be(change, message):
    with pytest.raises(ValueError, match=message):
        EvaluationPlan(**{"methods": METHODS, "budgets": (0.1,), **change})


def test_passkey_stands_at_its_depth_and_the_question_after_the_prompt():
    tokenizer = tiny_tokenizer()
    text = tokens(400)
    for depth in (0.0, 0.5, 1.0):
        whole = hidden(tokenizer, text, 200, depth)
        said = tokenizer.decode(whole[:200])
        assert said.count(PASSKEY) == 2
        assert "".join(tokenizer.decode(whole[200:])).endswith("The pass key is")
    with pytest.raises(ValueError, match="a pass key needs a prompt of more"):
        hidden(tokenizer, text, 40, 0.5)


PLAN = EvaluationPlan(
    methods={"snapkv": SnapKV(window=8), "sinks-window": SinksAndWindow()},
    budgets=(0.5, 0.8),
    prompt_tokens=120,
    continuation=20,
    queries=16,
    error_queries=8,
    passkey_depths=(0.5,),
)
DESCRIPTION = ModelDescription("tiny", "here", "0" * 64)


def evaluated(model, store=None, progress=None, plan=PLAN) -> CompressionResult:
    return evaluate_compression(
        model,
        tiny_tokenizer(),
        [Text("words", WORDS)],
        plan,
        DESCRIPTION,
        store=store,
        progress=progress,
    )


def test_evaluation_goes_on_from_finished_cells(model, tmp_path):
    store, seen = CellStore(tmp_path), []
    first = evaluated(model, store)
    again = evaluated(model, store, lambda what, done, total: seen.append((what, done)))
    assert not any("reading" in what for what, _ in seen)
    assert again.summary == first.summary  # times of day included: nothing was redone
    assert again.errors.equals(first.errors)
    next(tmp_path.iterdir()).write_text("{ truncated")
    third = evaluated(model, store)
    keys = ("method", "budget", "kl", "mean_error", "bytes")
    assert [[r[k] for k in keys] for r in third.summary] == [
        [r[k] for k in keys] for r in first.summary
    ]
    other = dataclasses.replace(PLAN, methods={"snapkv": SnapKV(window=9)})
    changed = evaluated(model, store, plan=other)  # other settings are another cell
    assert changed.summary[1]["kl"] != first.summary[1]["kl"]


def test_evaluation_has_a_row_for_each_method_budget_and_text(model, tmp_path):
    result = evaluated(model)
    rows = [(r["text"], r["method"], r["budget"]) for r in result.summary]
    assert rows == [
        ("words", "exact", 1.0),
        ("words", "snapkv", 0.5),
        ("words", "snapkv", 0.8),
        ("words", "sinks-window", 0.5),
        ("words", "sinks-window", 0.8),
    ]
    assert result.errors.num_rows == 4 * 3 * 2
    assert len(result.passkeys) == 5
    assert result.passkeys[0]["as_exact"]
    for name, content in result.files().items():
        (tmp_path / name).write_bytes(content)
    loaded = CompressionResult.load(tmp_path)
    assert loaded.summary == result.summary
    assert loaded.errors.equals(result.errors)


def test_evaluation_refuses_texts_and_contexts_too_short(model):
    long = dataclasses.replace(PLAN, prompt_tokens=290)
    with pytest.raises(ValueError, match="context of 300 tokens; got 310"):
        evaluated(model, plan=long)
    with pytest.raises(TextError, match="needs 140"):
        evaluate_compression(
            model, tiny_tokenizer(), [Text("short", "a b")], PLAN, DESCRIPTION
        )


def test_prefill_peak_counts_what_a_prompt_takes(model):
    peaks = [prefill_peak_bytes(model, tokens(n), None, 1.0) for n in (20, 280)]
    assert all(peak is None or peak >= 0 for peak in peaks)
