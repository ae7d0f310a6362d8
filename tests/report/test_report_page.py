"""The report as a file: what it says, what it weighs, how it is written."""

import collections
import html.parser
import json
import math
import os
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largeprompt.audit import AuditResult, merge_audits
from largeprompt.report import render_page, write_report
from largeprompt.report.explorer import unpacked
from largeprompt.report.numbers import show
from largeprompt.report.words_beside import texts_in_words
from tests.report.synthetic import synthetic_audit


class Cells(html.parser.HTMLParser):
    """The cells of the table of heads, row by row: column name -> text."""

    def __init__(self) -> None:
        html.parser.HTMLParser.__init__(self)
        self.rows: list[dict[str, str]] = []
        self.tags: list[str] = []
        self.field: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.tags.append(tag)
        if tag == "tr" and "data-layer" in attributes:
            self.rows.append({})
        self.field = attributes.get("data-field") if self.rows else None

    def handle_data(self, data: str) -> None:
        if self.field:
            self.rows[-1][self.field] = data
            self.field = None


def cells(text: str) -> Cells:
    parser = Cells()
    parser.feed(text)
    return parser


@pytest.fixture(scope="module")
def text(report) -> str:
    return report.read_text(encoding="utf-8")


def test_every_number_of_the_table_is_the_audit_s_to_three_digits(text, audit):
    rows = audit.heads.filter(pc.field("n") == 8192).to_pylist()
    shown = cells(text).rows
    assert len(shown) == len(rows) == 270
    for row, line in zip(rows, shown, strict=True):
        assert len(line) == 13
        for name, cell in line.items():
            value = row[name]
            if isinstance(value, str):
                assert cell == value
            elif value is None:
                assert cell == "–"
            else:
                assert float(cell.replace(",", "")) == pytest.approx(value, rel=5.01e-3)


@given(st.floats(-1e15, 1e15))
def test_shown_number_is_within_half_a_unit_of_its_third_digit(value):
    shown = float(show(value).replace(",", ""))
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 2) if value else 1.0
    assert abs(shown - value) <= 0.501 * unit


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        ("", "–"),
        ("linear", "linear"),
        (0, "0"),
        (0.0, "0"),
        (8192, "8,192"),
        (2048.0, "2,048"),
        (1234567.0, "1,234,567"),
        (12345678.9, "1.23e7"),
        (1e15, "1.00e15"),
        (0.00012345, "1.23e-4"),
        (0.5, "0.500"),
        (15.72, "15.7"),
        (-0.4649, "-0.465"),
        (True, "yes"),
        (1234.5, "1,235"),
    ],
)
def test_number_is_shown_as_people_read_it(value, text):
    assert show(value) == text


def test_summary_counts_the_heads_of_each_phase(text, audit):
    longest = audit.heads.filter(pc.field("n") == 8192)
    phases = np.array(longest["phase"].to_pylist())
    linear, heavy, frozen = (
        int((phases == name).sum()) for name in ("linear", "heavy-tailed", "frozen")
    )
    assert (
        f"At 8,192 tokens, {linear} of 270 heads are in the linear phase, {heavy} in "
        f"the heavy-tailed and {frozen} in the frozen one." in text
    )


def test_summary_quotes_the_medians_of_the_longest_length(text, audit):
    longest = audit.heads.filter(pc.field("n") == 8192)
    variance = float(np.median(longest["logit_variance"]))
    kept = float(np.median(longest["linear_error_kept"]))
    assert f"The median head has logit variance {variance:.3g}." in text
    assert f"tokens kept exact, {100 * kept:.0f}% of the output" in text
    assert "log\u00a0n\u00a0=\u00a09.01" in text


def test_summary_says_what_fails_in_how_many_heads(text, audit):
    longest = audit.heads.filter(pc.field("n") == 8192)
    failures = collections.Counter(longest["failed_assumption"].to_pylist())
    assert len(failures) == 3
    for name, heads in failures.items():
        shown = name or "nothing: the limit holds"
        assert f'<td>{heads}</td><th scope="row">{shown}</th>' in text


def test_advice_names_every_head_once(text, audit):
    acts = "Replace|Keep softmax for now in|Keep softmax in|Look closer at"
    counts = re.findall(rf"<li>(?:{acts}) ([\d,]+) heads?:", text)
    assert len(counts) >= 3
    assert sum(int(number) for number in counts) == 270
    kept = np.array(audit.heads.filter(pc.field("n") == 8192)["linear_error_kept"])
    assert f"<li>Replace {int((kept <= 0.1).sum())} heads:" in text


def test_summary_of_one_head_is_in_the_singular():
    text = render_page(synthetic_audit(1, 1, (1000,)))
    assert "of 1 head " in text
    assert "1 heads" not in text


def test_page_defines_every_column(text, audit):
    for name, definition in audit.manifest["definitions"].items():
        assert f"<code>{name}</code>" in text
        assert definition.split(";")[0].replace("'", "&#39;") in text


def test_page_names_no_other_file_or_host(text):
    tags = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", tags) == []
    assert re.findall(r"url\(|@import|https?://", tags) == []


def replaced(audit: AuditResult, name: str, values: list) -> AuditResult:
    """The audit with other values in one column."""
    index = audit.heads.column_names.index(name)
    field = audit.heads.schema.field(name)
    return AuditResult(
        audit.heads.set_column(index, field, pa.array(values)), audit.manifest
    )


@pytest.fixture(scope="module")
def calm() -> AuditResult:
    return synthetic_audit(1, 2, (50,))


def test_hostile_text_adds_no_element(calm):
    hostile = "</script></style><script>alert(1)</script><b onclick='x'>&lt;"
    manifest = {
        **calm.manifest,
        "model": {**calm.manifest["model"], "name": hostile},
        "text": {**calm.manifest["text"], "name": hostile},
        "definitions": dict.fromkeys(calm.manifest["definitions"], hostile),
    }
    angry = AuditResult(replaced(calm, "verdict", [hostile] * 2).heads, manifest)
    page = render_page(angry)
    assert cells(page).tags == cells(render_page(calm)).tags
    assert hostile not in page


def test_page_of_a_thousand_heads_at_six_lengths_stays_below_5_mb(report, text):
    runtime = len(text.split('<script type="module">')[1])
    per_head = (
        report.stat().st_size - runtime
    ) / 270  # what all share counts as theirs
    assert runtime + 32 * 32 * per_head < 5_000_000
    payload = unpacked(text.split('id="payload">')[1].split("</script>")[0])
    plain = len(json.dumps(payload)) / 270  # were it not packed, it would be too large
    assert runtime + 32 * 32 * plain > 5_000_000


def test_page_ignores_how_long_the_prompts_are():
    short = len(render_page(synthetic_audit(6, 5, (100, 200))))
    long = len(render_page(synthetic_audit(6, 5, (100_000, 200_000))))
    assert abs(long - short) < 0.01 * short


def test_numbers_that_are_not_finite_become_dashes(calm):
    text = render_page(replaced(calm, "ess", [math.nan, math.inf]))
    assert [line["ess"] for line in cells(text).rows] == ["–", "–"]
    payload = text.split('id="payload">')[1].split("</script>")[0]
    assert unpacked(payload)["heads"]["ess"] == [None, None]


def test_interrupted_writing_leaves_the_old_report_and_nothing_else(
    calm, tmp_path, monkeypatch
):
    path = tmp_path / "report.html"
    path.write_text("old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_report(calm, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_same_audit_gives_the_same_bytes(audit, report):
    assert render_page(audit).encode() == report.read_bytes()


def test_summary_of_one_of_several_texts_tells_how_much_they_differ(calm):
    def named(audit: AuditResult, name: str) -> AuditResult:
        heads = replaced(audit, "text", [name] * len(audit.heads)).heads
        entry = {**audit.manifest["text"], "name": name}
        return AuditResult(heads, {**audit.manifest, "text": entry, "texts": [entry]})

    other = replaced(calm, "linear_error_kept", [0.01, 0.02])
    whole = merge_audits([named(calm, "one"), named(other, "two")])
    told = "Over 2 texts the share of heads within"
    assert told in render_page(whole.only("one"), whole)
    assert told not in render_page(calm)
    (sentence,) = texts_in_words(whole, "10%")
    shares = whole.summary["over_texts"]["kept_share"]
    assert shares["most"] == 1
    assert f"({100 * shares['least']:.0f}" in sentence
    assert "to 100%" in sentence


def test_summary_says_how_many_heads_are_linear_without_their_sinks(text, audit):
    rows = audit.heads.filter(pc.field("n") == 8192).to_pylist()
    linear = sum(not row["failed_assumption_without_sinks"] for row in rows)
    assert f"would be {linear:,} of 270 heads." in text
