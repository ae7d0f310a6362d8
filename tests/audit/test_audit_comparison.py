"""Two audits compared: each number is one of theirs, or follows from two of them."""

import dataclasses
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from largeprompt.audit import AuditResult, Comparison, compare_audits
from largeprompt.audit.comparison_columns import BOTH, DIFFERENCES, RATIOS
from largeprompt.errors import ComparisonError, ResultError
from tests.report.synthetic import synthetic_audit

A = synthetic_audit(4, 3, (64, 128, 256), name="base")
PLACES = ("layer", "head", "n")


def changed(audit: AuditResult, **columns) -> AuditResult:
    """The audit with columns replaced by functions of their values."""
    heads = audit.heads
    for name, change in columns.items():
        values = [change(value) for value in heads[name].to_pylist()]
        index = heads.column_names.index(name)
        field = heads.schema.field(name)
        heads = heads.set_column(index, field, pa.array(values, field.type))
    return AuditResult(heads, audit.manifest)


def told(audit: AuditResult, group: str, **entries) -> AuditResult:
    """The audit with other entries in its manifest."""
    manifest = {**audit.manifest, group: {**audit.manifest[group], **entries}}
    return dataclasses.replace(audit, manifest=manifest)


def read(audit: AuditResult, *names: str) -> AuditResult:
    """The audit as one of texts by other names, each with the same numbers."""
    texts = [{**audit.manifest["texts"][0], "name": name} for name in names]
    rows = [{**row, "text": name} for name in names for row in audit.heads.to_pylist()]
    table = pa.Table.from_pylist(rows, audit.heads.schema)
    return AuditResult(table, {**audit.manifest, "texts": texts})


def test_comparison_shows_the_numbers_of_both_audits():
    b = changed(A, ess=lambda v: 3 * v, verdict=lambda _: "other")
    rows = compare_audits(A, b).heads.to_pylist()
    assert len(rows) == A.heads.num_rows
    for which, audit in (("a", A), ("b", b)):
        own = {tuple(r[p] for p in PLACES): r for r in audit.heads.to_pylist()}
        for row in rows:
            mine = own[tuple(row[p] for p in PLACES)]
            for name in (*BOTH, *RATIOS, *DIFFERENCES):
                assert row[f"{name}_{which}"] == mine[name], name


def test_change_is_in_doublings_or_what_is_added():
    b = changed(A, logit_variance=lambda v: 8 * v, sink_share=lambda v: v - 0.25)
    for row in compare_audits(A, b).heads.to_pylist():
        assert row["logit_variance_change"] == pytest.approx(3.0, abs=1e-12)
        assert row["sink_share_change"] == pytest.approx(-0.25, abs=1e-12)
        assert row["ess_change"] == 0.0


def test_change_of_what_is_missing_or_not_positive_is_missing():
    b = changed(A, tokens_needed=lambda _: None, ess=lambda _: math.inf)
    rows = compare_audits(A, b).heads.to_pylist()
    assert {row["tokens_needed_change"] for row in rows} == {None}
    assert {row["ess_change"] for row in rows} == {None}


def test_audit_compared_with_itself_changes_nothing():
    comparison = compare_audits(A, A)
    assert comparison.manifest["differences"] == {}
    assert comparison.summary["moved"] == comparison.summary["changed"] == 0
    for row in comparison.heads.to_pylist():
        assert (row["move"], row["changed"], row["apart"]) == (
            "same phase",
            False,
            False,
        )
        changes = [v for name, v in row.items() if name.endswith("_change")]
        assert all(v == 0 for v in changes if v is not None)


def test_exchanged_audits_have_the_opposite_changes():
    b = synthetic_audit(4, 3, (64, 128, 256), window=40)
    forth, back = compare_audits(A, b).heads, compare_audits(b, A).heads
    for name in (*RATIOS, *DIFFERENCES):
        for there, here in zip(
            forth[f"{name}_change"], back[f"{name}_change"], strict=True
        ):
            value = there.as_py()
            assert here.as_py() == (None if value is None else pytest.approx(-value))
    turned = {"towards linear": "towards frozen", "towards frozen": "towards linear"}
    moves = [turned.get(move, move) for move in forth["move"].to_pylist()]
    assert moves == back["move"].to_pylist()
    assert set(moves) != {"same phase"}


def test_summary_counts_who_came_and_who_went():
    flips = iter([0.05, 0.5] * 1000)
    b = changed(A, linear_error_kept=lambda _: next(flips))
    within = compare_audits(A, b).summary["within_eps"]["linear_error_kept"]
    longest = pc.field("n") == 256
    was = np.array(A.heads.filter(longest)["linear_error_kept"]) <= 0.1
    now = np.array(b.heads.filter(longest)["linear_error_kept"]) <= 0.1
    assert within == {
        "a": was.sum(),
        "b": now.sum(),
        "came": (now & ~was).sum(),
        "went": (was & ~now).sum(),
    }


def test_variance_apart_means_disjoint_ranges_over_queries():
    far = changed(
        A, logit_variance_low=lambda v: 100 * v, logit_variance_high=lambda v: 100 * v
    )
    near = changed(A, logit_variance_low=lambda v: 1.01 * v)
    assert all(compare_audits(A, far).heads["apart"].to_pylist())
    assert all(compare_audits(far, A).heads["apart"].to_pylist())
    assert not any(compare_audits(A, near).heads["apart"].to_pylist())


def test_two_single_texts_are_compared_whatever_they_are():
    comparison = compare_audits(A, read(A, "code"))
    assert comparison.texts == ["prose → code"]
    assert comparison.manifest["differences"] == {"text.name": ["prose", "code"]}


def test_several_texts_are_paired_by_name():
    comparison = compare_audits(read(A, "prose", "code"), read(A, "code", "law"))
    assert comparison.texts == ["code"]
    assert comparison.manifest["unpaired"] == {"a": 36, "b": 36}
    both = compare_audits(read(A, "prose", "code"), read(A, "code", "prose"))
    assert both.texts == ["prose", "code"]
    assert both.only("code").heads.num_rows == A.heads.num_rows
    with pytest.raises(ValueError, match=r"text must be one of .*; got 'law'"):
        both.only("law")


def test_only_what_both_measured_is_compared():
    b = synthetic_audit(4, 3, (128, 512))
    comparison = compare_audits(A, b)
    assert set(comparison.heads["n"].to_pylist()) == {128}
    assert comparison.manifest["differences"]["arguments.lengths"] == [
        [64, 128, 256],
        [128, 512],
    ]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (synthetic_audit(5, 3, (64,)), "4 layers of 3 heads, and 5 layers of 3 heads"),
        (synthetic_audit(4, 6, (64,)), "4 layers of 3 heads, and 4 layers of 6 heads"),
        (synthetic_audit(4, 3, (100,)), r"lengths \[64, 128, 256\] and \[100\]"),
        (told(A, "arguments", eps=0.2), "an error of 0.1, of the other for 0.2"),
        (
            read(A, "code", "law"),
            "no text was read in both audits: prose, and code, law",
        ),
    ],
    ids=["layers", "heads", "lengths", "eps", "texts"],
)
def test_audits_that_cannot_be_compared_are_refused_with_the_reason(other, said):
    with pytest.raises(ComparisonError, match=said):
        compare_audits(A, other)


def test_differences_name_model_settings_and_versions():
    b = told(told(A, "model", dtype="bfloat16"), "versions", torch="2.14.0")
    assert compare_audits(A, b).manifest["differences"] == {
        "model.dtype": ["float32", "bfloat16"],
        "versions.torch": ["2.13.0", "2.14.0"],
    }


def test_saved_comparison_is_read_back(tmp_path):
    comparison = compare_audits(A, read(A, "code"))
    for name, content in comparison.files().items():
        (tmp_path / name).write_bytes(content)
    again = Comparison.load(tmp_path)
    assert again.heads.equals(comparison.heads)
    assert again.manifest == json.loads(json.dumps(comparison.manifest))


def test_folder_that_holds_no_comparison_is_refused(tmp_path):
    with pytest.raises(ResultError, match="is no comparison"):
        Comparison.load(tmp_path)
    for name, content in compare_audits(A, A).files().items():
        (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ResultError, match="is no comparison"):
        Comparison.load(tmp_path)
