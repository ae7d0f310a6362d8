"""The report in headless Chromium: what a reader sees and does."""

import itertools
import math
from pathlib import Path

import pyarrow.compute as pc
import pytest
from playwright.sync_api import Browser, Page

from largeprompt.audit import AuditResult
from largeprompt.audit.profiles import PROFILES
from largeprompt.report import write_report
from largeprompt.report.explorer import rounded, unpacked
from largeprompt.report.metrics import METRICS
from tests.report.browser import inked_share, open_report, watch
from tests.report.synthetic import LENGTHS, synthetic_audit

pytestmark = pytest.mark.browser

HEADS = 9


def click_cell(page: Page, layer: int, head: int) -> None:
    """Click where the map draws this head: cells are drawn by layer, then by head."""
    page.locator("#chart-map").scroll_into_view_if_needed()
    cells = page.locator("#chart-map svg .mark-rect").first.locator("path")
    box = cells.nth(layer * HEADS + head).bounding_box()
    assert box is not None, "the cell is drawn"
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def column(page: Page, name: str) -> list[str]:
    return page.locator(f"#heads tbody [data-field={name}]").all_inner_texts()


def card(page: Page, name: str) -> str:
    return page.locator(f"#card [data-field={name}]").first.inner_text()


def row_of(audit: AuditResult, layer: int, head: int, n: int) -> dict:
    condition = (pc.field("layer") == layer) & (pc.field("head") == head)
    return audit.heads.filter(condition & (pc.field("n") == n)).to_pylist()[0]


def test_report_shows_every_chart(page, tmp_path):
    charts = ("map", "ess", "errors", "phases", "shares", "law")
    for chart in (*charts, *(profile.name for profile in PROFILES)):
        assert page.locator(f"#chart-{chart} svg").count() == 1, chart
        path = tmp_path / f"{chart}.png"
        page.locator(f"#chart-{chart}").screenshot(path=path)
        assert inked_share(path.read_bytes()) > 0.01, chart


def test_blank_page_is_seen_to_be_blank(browser: Browser):
    page = browser.new_page()
    page.set_content("<p></p>")
    assert inked_share(page.screenshot()) < 0.001
    page.close()


def test_map_draws_one_cell_per_head(page):
    cells = page.locator("#chart-map svg .mark-rect").first.locator("path")
    assert cells.count() == 30 * HEADS


@pytest.mark.parametrize(("layer", "head"), [(0, 0), (7, 4), (29, 8)])
def test_clicked_head_is_named_on_the_card_and_marked_in_the_table(
    page, audit, layer, head
):
    click_cell(page, layer, head)
    assert f"Layer {layer}, head {head}" in page.locator("#card h3").first.inner_text()
    assert card(page, "verdict") == row_of(audit, layer, head, 8192)["verdict"]
    marked = page.locator("#heads tr[aria-current]")
    assert marked.count() == 1
    assert marked.get_attribute("data-layer") == str(layer)
    assert marked.get_attribute("data-head") == str(head)


def test_clicked_head_draws_its_own_curves(page):
    curves = page.locator("#chart-errors svg .mark-line path")
    before = curves.evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    click_cell(page, 3, 2)
    page.wait_for_timeout(200)
    after = curves.evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    assert len(before) == len(after) == 4
    assert all(old != new for old, new in zip(before, after, strict=True))


def test_arrow_keys_move_the_chosen_head(page):
    click_cell(page, 5, 5)
    page.locator("#chart-map").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    assert (card(page, "layer"), card(page, "head")) == ("7", "4")


def test_row_of_the_table_chooses_its_head_by_keyboard(page):
    page.locator("#heads tbody tr").nth(13).locator("button").press("Enter")
    assert (card(page, "layer"), card(page, "head")) == ("1", "4")


def test_length_refills_the_table(page, audit):
    page.get_by_label("512", exact=True).check(force=True)
    assert column(page, "verdict") == [
        row_of(audit, layer, head, 512)["verdict"]
        for layer, head in itertools.product(range(30), range(HEADS))
    ]
    assert card(page, "n") == page.locator("#table-n").inner_text() == "512"


def test_browser_writes_numbers_as_the_page_was_written(page):
    names = page.locator("#heads th").evaluate_all(
        "all => all.map(h => h.dataset.column)"
    )
    written = {name: column(page, name) for name in names if name}
    page.get_by_label("256", exact=True).check(force=True)
    assert column(page, "ess") != written["ess"]
    page.get_by_label("8,192", exact=True).check(force=True)
    assert {name: column(page, name) for name in written} == written


@pytest.mark.parametrize("name", ["ess", "tokens_needed", "phase", "layer"])
def test_heading_sorts_the_rows_by_value_both_ways(page, audit, name):
    rows = rounded(audit.heads.filter(pc.field("n") == 8192).to_pylist())
    values = {(row["layer"], row["head"]): row[name] for row in rows}
    heading = page.locator(f"#heads th[data-column={name}]")
    orders = (
        ("descending", "ascending") if name == "layer" else ("ascending", "descending")
    )
    for order in orders:
        heading.locator("button").press("Enter")
        assert heading.get_attribute("aria-sort") == order
        assert page.locator("#heads [aria-sort]").count() == 1
        shown = page.locator("#heads tbody tr").evaluate_all(
            "lines => lines.map(line => [+line.dataset.layer, +line.dataset.head])"
        )
        found = [values[layer, head] for layer, head in shown]
        known = [value for value in found if value is not None]
        assert found == known + [None] * (len(found) - len(known)), "null comes last"
        assert known == sorted(known, reverse=order == "descending")


def test_every_metric_of_the_map_can_be_shown(page):
    options = page.locator("select[name=metric] option").evaluate_all(
        "options => options.map(option => option.value)"
    )
    assert options == [metric.column for metric in METRICS]
    for option in options:
        page.locator("select[name=metric]").select_option(option)
        page.wait_for_function(
            "note => document.getElementById('metric-note').textContent === note",
            arg=page.locator(
                f"select[name=metric] option[value={option}]"
            ).get_attribute("data-note"),
        )
    click_cell(page, 2, 6)
    assert (card(page, "layer"), card(page, "head")) == ("2", "6")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_a_telephone_in_light_and_dark(browser: Browser, report, scheme):
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    open_report(page, report)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    background = page.evaluate(
        "getComputedStyle(document.documentElement).backgroundColor"
    )
    channels = [int(part) for part in background[4:-1].split(",")]
    assert (sum(channels) < 3 * 128) == (scheme == "dark")
    page.close()


def test_page_reads_without_javascript(browser: Browser, report, audit):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert page.get_by_text("of 270 heads").first.is_visible()
    assert page.locator("#heads tbody tr").count() == 270
    assert page.locator("#heads tbody td").first.is_visible()
    assert not page.locator(".charts").is_visible()
    context.close()


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}"


def test_hostile_model_name_stays_text(browser: Browser, tmp_path):
    path = tmp_path / "report.html"
    write_report(synthetic_audit(2, 3, (64, 100), name=HOSTILE), path)
    page = browser.new_page()
    record = watch(page)
    page.on("dialog", lambda dialog: record.complaints.append(dialog.message))
    open_report(page, path)
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.title().startswith(HOSTILE)
    assert page.locator("img").count() == 0
    assert (record.requests, record.complaints) == ([path.as_uri()], [])
    page.close()


@pytest.mark.parametrize(
    "audit",
    [
        synthetic_audit(1, 1, (2,)),
        synthetic_audit(1, 2, (1, 3)),
        synthetic_audit(5, 4, (100, 1000, 100_000), window=512),
    ],
    ids=["one head, one length", "one token", "sliding windows"],
)
def test_small_and_odd_audits_draw_without_complaint(browser: Browser, audit, tmp_path):
    path = tmp_path / "report.html"
    write_report(audit, path)
    page = browser.new_page()
    record = watch(page)
    open_report(page, path)
    assert page.locator(".chart svg").count() == 6
    assert (record.requests, record.complaints) == ([path.as_uri()], [])
    page.close()


def test_watch_notices_a_request_and_an_error(browser: Browser, tmp_path: Path):
    path = tmp_path / "bad.html"
    path.write_text("<img src='http://127.0.0.1:9/x.png'><script>throw 1</script>")
    page = browser.new_page()
    record = watch(page)
    page.goto(path.as_uri())
    assert len(record.requests) == 2
    assert len(record.complaints) >= 1
    page.close()


def test_policy_of_the_page_refuses_requests(browser: Browser, report: Path, tmp_path):
    path = tmp_path / "report.html"
    text = report.read_text()
    path.write_text(
        text.replace("<main>", "<main><img src='http://127.0.0.1:9/x.png'>")
    )
    page = browser.new_page()
    record = watch(page)
    open_report(page, path)
    assert any("Content Security Policy" in text for text in record.complaints)
    page.close()


def test_payload_of_the_page_is_the_table(page, audit: AuditResult):
    heads = unpacked(page.locator("#payload").text_content() or "")["heads"]
    table = audit.heads.sort_by(
        [("n", "ascending"), ("layer", "ascending"), ("head", "ascending")]
    )
    assert set(heads) == set(table.column_names)
    for name in table.column_names:
        assert heads[name] == [row[name] for row in rounded(table.to_pylist())], name
    assert math.prod([30, HEADS, len(LENGTHS)]) == len(heads["n"])
