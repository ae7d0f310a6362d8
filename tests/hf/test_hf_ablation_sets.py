"""Which heads are replaced, and what is kept of the result."""

import dataclasses
import itertools

import pyarrow as pa
import pytest
import torch

from largeprompt.errors import NoHeadError, ResultError, TextError
from largeprompt.hf import ablation as driver
from largeprompt.hf import audit_model
from largeprompt.hf.ablation import Ablation, ablate_model
from largeprompt.hf.ablation_evaluation import Effect, Intact
from largeprompt.hf.ablation_limit import Replacement
from largeprompt.hf.ablation_result import SCHEMA, AblationResult, heads_within
from largeprompt.hf.ablation_selection import (
    AuditedHead,
    audited_heads,
    curve,
    curve_sizes,
    select,
)
from tests.hf.tiny import tiny_model, tiny_tokenizer

TEXT = "Softmax over a long prompt is an operator on the law of its tokens. " * 9
SMALL = Ablation(tokens=90, heads=("all",), replacement=Replacement(2, 6))
HEADS = [
    AuditedHead((layer, head), error, linear=error < 0.05, kept=error < 0.2)
    for (layer, head), error in zip(
        [(0, 0), (0, 1), (1, 0), (1, 1)], [0.3, 0.01, 0.1, 0.6], strict=True
    )
]


def ablate(ablation, **options):
    return ablate_model(
        tiny_model("llama", torch.float64), tiny_tokenizer(), TEXT, ablation, **options
    )


def test_a_set_of_heads_is_what_its_name_says():
    chosen = {
        name: select(name, HEADS, 0).heads
        for name in ("linear-ones", "kept-ones", "all", "1.1,0.0,1.1")
    }
    assert chosen == {
        "linear-ones": ((0, 1),),
        "kept-ones": ((0, 1), (1, 0)),
        "all": ((0, 0), (0, 1), (1, 0), (1, 1)),
        "1.1,0.0,1.1": ((0, 0), (1, 1)),
    }


def test_random_sets_follow_the_seed_and_have_their_size():
    sets = {select("random:2", HEADS, seed).heads for seed in range(20)}
    assert all(len(set(heads)) == 2 for heads in sets)
    assert len(sets) > 1
    assert select("random:2", HEADS, 3) == select("random:2", HEADS, 3)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("2.0", r"heads from 0\.0 to 1\.1; got 2\.0"),
        ("0.0,1.7", r"heads from 0\.0 to 1\.1; got 1\.7"),
        ("random:5", "1 to 4 heads; got 'random:5'"),
        ("random:0", "1 to 4 heads"),
        ("", "heads must be linear-ones, kept-ones, all"),
        ("0.0;1.0", "heads must be linear-ones"),
    ],
)
def test_heads_that_are_not_there_are_refused(wanted, message):
    with pytest.raises(ValueError, match=message):
        select(wanted, HEADS, 0)


@pytest.mark.parametrize("total", [1, 2, 7, 8, 270])
def test_a_curve_grows_by_doubling_up_to_every_head(total):
    sizes = curve_sizes(total)
    assert sizes[0] == 0
    assert sizes[-1] == total
    assert sizes == sorted(set(sizes))
    assert all(b <= 2 * a for a, b in itertools.pairwise(sizes[1:]))


def test_a_curve_replaces_the_most_linear_heads_first_and_random_ones_beside():
    ordered = sorted(HEADS, key=lambda head: head.error)
    sets = curve(ordered, seed=1)
    audit = [s.heads for s in sets if s.order == "audit"]
    assert audit[1] == ((0, 1),)
    assert audit[2] == ((0, 1), (1, 0))
    for order in ("audit", "random"):
        nested = [set(s.heads) for s in sets if s.order == order]
        assert all(a < b for a, b in itertools.pairwise(nested))
        assert len(nested[-1]) == 4


def test_heads_of_an_audit_come_in_the_order_of_their_error():
    audit = audit_model(tiny_model("llama"), tiny_tokenizer(), TEXT, [90], eps=0.5)
    rows = audit.heads.to_pylist()
    heads = audited_heads(rows, 0.5)
    assert [h.error for h in heads] == sorted(r["linear_error_kept"] for r in rows)
    linear = {(r["layer"], r["head"]) for r in rows if not r["failed_assumption"]}
    assert {h.head for h in heads if h.linear} == linear
    assert len(heads) == 3 * 6


def row(order, heads, change):
    return {"order": order, "heads_replaced": heads, "loss_change": change}


def test_a_budget_ends_where_the_loss_first_leaves_it():
    rows = [
        *(row("audit", *pair) for pair in [(0, 0), (1, -0.1), (2, 0.2), (4, 0.05)]),
        row("random", 4, 0.0),
        row("chosen", 9, 0.0),
    ]
    assert heads_within(rows, "audit", 0.1) == 1  # 4 fit again, by luck
    assert heads_within(rows, "audit", 0.2) == 4
    assert heads_within(rows, "random", 0.1) == 4


def test_ablation_of_a_model_has_a_row_for_every_set(tmp_path):
    ablation = dataclasses.replace(SMALL, heads=("all", "0.1,2.5"), curve=True)
    seen = []
    result = ablate(ablation, progress=lambda *done: seen.append(done))
    rows = result.rows
    sizes = [0, 1, 2, 4, 8, 16, 18]
    assert [r["heads_replaced"] for r in rows] == [18, 2, *sizes, *sizes]
    assert rows[1]["heads"] == ["0.1", "2.5"]
    assert rows[0]["kl"] == rows[8]["kl"] == rows[-1]["kl"] > 0
    assert rows[2]["kl"] == rows[2]["loss_change"] == 0
    assert rows[2]["loss"] == pytest.approx(rows[0]["loss"] - rows[0]["loss_change"])
    assert seen[-1] == (16, 16)
    assert result.manifest["positions"] == 90 - 1 - 8
    assert result.summary["heads"] == 18
    assert set(result.summary["sets"]) == {"all", "0.1,2.5"}
    assert set(result.summary["heads_within_budget"]) == {"audit", "random"}
    for name, content in result.files().items():
        (tmp_path / name).write_bytes(content)
    loaded = AblationResult.load(tmp_path)
    assert loaded.table.equals(result.table)
    assert loaded.manifest == result.manifest


def test_an_interrupted_ablation_goes_on_from_what_is_done(tmp_path, monkeypatch):
    ablation = dataclasses.replace(SMALL, heads=("0.0", "0.1", "0.2"))
    whole = ablate(ablation)
    measured = Intact.effect
    calls = []

    def counted(self, heads, replacement):
        calls.append(heads)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return measured(self, heads, replacement)

    monkeypatch.setattr(Intact, "effect", counted)
    with pytest.raises(KeyboardInterrupt):
        ablate(ablation, resume_in=tmp_path / "parts")
    resumed = ablate(ablation, resume_in=tmp_path / "parts")
    assert len(calls) == 4  # the third again, the first two never
    assert resumed.table.equals(whole.table)
    other = dataclasses.replace(ablation, replacement=Replacement(3, 6))
    ablate(other, resume_in=tmp_path / "parts")
    assert len(calls) == 7  # what another replacement did is not taken


def test_an_audit_without_linear_heads_is_told():
    with pytest.raises(NoHeadError, match="finds no head for linear-ones within 1e-09"):
        ablate(dataclasses.replace(SMALL, heads=("linear-ones",), eps=1e-9))
    both = dataclasses.replace(SMALL, heads=("linear-ones", "all"), eps=1e-9)
    assert [r["heads_replaced"] for r in ablate(both).rows] == [0, 18]


def test_no_audit_is_made_for_heads_that_are_named(monkeypatch):
    monkeypatch.setattr(driver, "audit_model", None)
    assert ablate(SMALL).rows[0]["heads_replaced"] == 18


def test_wrong_questions_are_refused_before_the_model_runs():
    with pytest.raises(ValueError, match="tokens must be at least 25, 8 of them exact"):
        dataclasses.replace(SMALL, tokens=24)
    with pytest.raises(ValueError, match="heads must name at least one set"):
        dataclasses.replace(SMALL, heads=())
    with pytest.raises(ValueError, match="eps must be a positive number"):
        dataclasses.replace(SMALL, eps=0.0)
    with pytest.raises(ValueError, match=r"at most 300 \(the model's context\)"):
        ablate(dataclasses.replace(SMALL, tokens=301))
    with pytest.raises(ValueError, match=r"heads from 0\.0 to 2\.5; got 3\.0"):
        ablate(dataclasses.replace(SMALL, heads=("3.0",)))
    with pytest.raises(TextError, match="text has 5 tokens"):
        ablate_model(tiny_model("llama"), tiny_tokenizer(), "brief", SMALL)


def test_files_that_do_not_belong_together_are_refused(tmp_path):
    effect = Effect(1.0, 0.1, 0.01, 0.2, 0.9)
    table = pa.Table.from_pylist(
        [
            {"set": "all", "order": "chosen", "heads_replaced": 1, "heads": ["0.0"]}
            | dataclasses.asdict(effect)
        ],
        SCHEMA,
    )
    manifest = {"format": "largeprompt.ablation/1", "model": {"layers": 1, "heads": 1}}
    files = AblationResult(table, manifest).files()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    AblationResult.load(tmp_path)
    (tmp_path / "ablation.parquet").write_bytes(files["ablation.parquet"][:-7])
    with pytest.raises(ResultError, match="truncated, or not the one that manifest"):
        AblationResult.load(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ResultError, match="is no JSON"):
        AblationResult.load(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "other"}')
    with pytest.raises(ResultError, match="is not of the format"):
        AblationResult.load(tmp_path)
    (tmp_path / "summary.json").unlink()
    with pytest.raises(ResultError, match=r"no largeprompt\.ablation/1 there"):
        AblationResult.load(tmp_path)
