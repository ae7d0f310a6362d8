"""The page of a comparison: what it says, and what a reader does with it."""

import re
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.csv
import pytest
from playwright.sync_api import Browser

from largeprompt.audit import Comparison, compare_audits
from largeprompt.report import comparison_page
from largeprompt.report.comparison_figure import TITLES, comparison_figure
from tests.report.browser import inked_share, open_report, watch
from tests.report.synthetic import synthetic_audit

LENGTHS = (256, 1024)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    base = synthetic_audit(12, 4, LENGTHS, name="base <b>model</b>")
    return compare_audits(base, synthetic_audit(12, 4, LENGTHS, window=24))


@pytest.fixture(scope="module")
def text(comparison) -> str:
    return comparison_page(comparison)


@pytest.fixture(scope="module")
def path(text, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("comparison") / "comparison.html"
    path.write_text(text)
    return path


def test_page_counts_moves_from_phase_to_phase(comparison, text):
    longest = comparison.heads.filter(pc.field("n") == 1024).to_pylist()
    moved = sum(row["phase_a"] != row["phase_b"] for row in longest)
    assert 0 < moved < 48
    assert f"At 1,024 tokens, {moved} of 48 heads are in another phase" in text
    table = re.findall(r"<table class=\"both moves\">.*?</table>", text, re.DOTALL)[0]
    cells = re.findall(r"<td[^>]*>(?:<b>)?(\d+)", table)
    phases = ["linear", "heavy-tailed", "frozen"]
    counted = [
        sum((row["phase_a"], row["phase_b"]) == (a, b) for row in longest)
        for a in phases
        for b in phases
    ]
    assert [int(cell) for cell in cells] == counted


def test_page_says_in_what_the_audits_differ(text):
    told = r"model: name</th><td>base &lt;b&gt;model&lt;/b&gt;</td><td>SmolLM2"
    assert re.search(told, text)
    same = comparison_page(compare_audits(*[synthetic_audit(1, 1, (64,))] * 2))
    assert "In nothing that was recorded" in same


def test_page_names_no_other_file_and_stays_small(text):
    tags = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", tags) == []
    assert len(text) < 5_000_000


@pytest.mark.browser
def test_reader_clicks_sorts_filters_and_switches(browser: Browser, path, comparison):
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    record = watch(page)
    open_report(page, path)
    assert page.locator(".chart svg").count() == 5

    page.locator("#chart-map").scroll_into_view_if_needed()
    cells = page.locator("#chart-map svg .mark-rect").first.locator("path")
    assert cells.count() == 48
    cells.nth(7 * 4 + 2).dispatch_event("click")
    assert "Layer 7, head 2" in page.locator("#card h3").first.inner_text()
    wanted = (pc.field("layer") == 7) & (pc.field("head") == 2)
    (row,) = comparison.heads.filter(wanted & (pc.field("n") == 1024)).to_pylist()
    for which in "ab":
        shown = page.locator(f"#card [data-field=verdict_{which}]").inner_text()
        assert shown == row[f"verdict_{which}"]

    changes = comparison.heads.filter(pc.field("n") == 1024).to_pylist()
    page.locator("#heads th[data-column=logit_variance_change] button").press("Enter")
    first = page.locator("#heads tbody tr").first
    least = min(changes, key=lambda row: row["logit_variance_change"])
    assert first.get_attribute("data-layer") == str(least["layer"])
    assert first.get_attribute("data-head") == str(least["head"])

    page.locator("[name=choice][data-column=move]").select_option("towards frozen")
    left = sum(row["move"] == "towards frozen" for row in changes)
    told = page.locator("output[name=left]").inner_text()
    assert told == f"{left} of 48 heads"

    for option in page.locator("select[name=metric] option").all():
        page.locator("select[name=metric]").select_option(option.get_attribute("value"))
        page.wait_for_timeout(50)
    assert (record.requests, record.complaints) == ([path.as_uri()], [])
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_comparison_fits_a_telephone(browser: Browser, path, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    open_report(page, path)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("b").filter(has_text="model").count() == 0
    page.close()


@pytest.mark.parametrize("kind", list(TITLES))
def test_figure_of_a_comparison_is_drawn_with_its_numbers(comparison, kind, tmp_path):
    assert comparison_figure(comparison, kind, ".svg").startswith(b"<svg")
    assert inked_share(comparison_figure(comparison, kind, ".png")) > 0.01
    (tmp_path / "data.csv").write_bytes(comparison_figure(comparison, kind, ".csv"))
    written = pyarrow.csv.read_csv(tmp_path / "data.csv").to_pylist()
    longest = comparison.heads.filter(pc.field("n") == 1024).to_pylist()
    assert [row["logit_variance_change"] for row in written] == [
        row["logit_variance_change"] for row in longest
    ]
    with pytest.raises(ValueError, match=r"a figure must be a .*; got '.gif'"):
        comparison_figure(comparison, kind, ".gif")
