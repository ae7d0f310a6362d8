"""The filter, the curves and the play button of the report, in headless Chromium."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest
from playwright.sync_api import Browser, Page

from largeprompt.audit import AuditResult
from largeprompt.audit.profiles import PROFILES
from largeprompt.report import write_report
from largeprompt.report.explorer import unpacked
from largeprompt.report.numbers import show
from largeprompt.report.profile_data import curves_of, pooled
from tests.report.browser import open_report, watch
from tests.report.synthetic import synthetic_audit, synthetic_profiles

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def opened(browser: Browser, report: Path) -> Iterator[Page]:
    """The report, opened once; afterwards: no complaint and no request but the file."""
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    record = watch(page)
    open_report(page, report)
    yield page
    page.close()
    assert record.requests == [report.as_uri()]
    assert record.complaints == []


@pytest.fixture
def page(opened: Page) -> Page:
    """The open report as it was when it opened: the longest length, no filter."""
    opened.get_by_label("8,192", exact=True).check(force=True)
    opened.get_by_role("button", name="Clear").click()
    opened.wait_for_function(
        "document.querySelector('output[name=left]').value === '270 of 270 heads'"
    )
    return opened


def shown(page: Page) -> set[tuple[int, int]]:
    """The heads whose rows can be seen."""
    lines = page.locator("#heads tbody tr").evaluate_all(
        "lines => lines.filter(line => line.offsetHeight > 0)"
        ".map(line => [+line.dataset.layer, +line.dataset.head])"
    )
    return {(layer, head) for layer, head in lines}


def matching(audit: AuditResult, condition: pc.Expression) -> set[tuple[int, int]]:
    rows = audit.heads.filter((pc.field("n") == 8192) & condition).to_pylist()
    return {(row["layer"], row["head"]) for row in rows}


def test_filter_leaves_the_heads_of_a_phase(page, audit):
    page.locator("[name=choice][data-column=phase]").select_option("frozen")
    wanted = matching(audit, pc.field("phase") == "frozen")
    assert 0 < len(wanted) < 270
    assert shown(page) == wanted
    told = page.locator("output[name=left]").inner_text()
    assert told == f"{len(wanted)} of 270 heads"
    page.wait_for_function(
        "count => document.querySelectorAll('#chart-map svg .mark-rect')[2]"
        ".querySelectorAll('path').length === count",
        arg=270 - len(wanted),
    )


def test_filter_bounds_a_column_by_value(page, audit):
    page.locator("select[name=column]").select_option("ess")
    page.locator("input[name=bound]").fill("10")
    assert shown(page) == matching(audit, pc.field("ess") <= 10)
    page.locator("select[name=relation]").select_option("least")
    assert shown(page) == matching(audit, pc.field("ess") >= 10)


def test_filter_finds_words_and_places(page):
    for words in ("layer 3", "layer 3, head 1", "the limit misses", "no such words"):
        numbers = {key: int(at) for key, at in re.findall(r"(layer|head) (\d+)", words)}
        page.locator("input[name=words]").fill(words)
        expected = {
            (layer, head)
            for layer in range(30)
            for head in range(9)
            if numbers.get("layer", layer) == layer
            and numbers.get("head", head) == head
            and "no such" not in words
        }
        assert shown(page) == expected, words


def test_filter_is_cleared_and_keeps_to_the_chosen_length(page, audit):
    page.locator("[name=choice][data-column=phase]").select_option("linear")
    page.get_by_label("256", exact=True).check(force=True)
    rows = audit.heads.filter(
        (pc.field("n") == 256) & (pc.field("phase") == "linear")
    ).to_pylist()
    assert shown(page) == {(row["layer"], row["head"]) for row in rows}
    page.get_by_role("button", name="Clear").click()
    page.wait_for_function(
        "document.querySelector('output[name=left]').value === '270 of 270 heads'"
    )
    assert len(shown(page)) == 270


def test_play_steps_through_every_length_and_stops(page):
    page.evaluate(
        """() => {
          const told = document.getElementById("table-n");
          window.seen = [];
          new MutationObserver(() => window.seen.push(told.textContent)).observe(
            told, { childList: true }
          );
        }"""
    )
    page.get_by_role("button", name="Play").press("Enter")
    page.wait_for_selector("[name=play][aria-pressed=true]")
    page.wait_for_selector("[name=play][aria-pressed=false]")
    asked = ["256", "512", "1,024", "2,048", "4,096", "8,192"]
    assert page.evaluate("window.seen") == asked


def test_card_draws_the_chosen_head_s_own_curves(page, audit):
    def drawn() -> list[str]:
        lines = page.locator(".profiles svg .mark-line path")
        return lines.evaluate_all("all => all.map(path => path.getAttribute('d'))")

    before = drawn()
    page.locator("#heads tbody tr").nth(13).locator("button").press("Enter")
    page.wait_for_timeout(200)
    assert len(before) == len(drawn())
    assert before != drawn()
    mine = (pc.field("layer") == 1) & (pc.field("head") == 4)
    (curve,) = audit.profiles.filter(
        mine & (pc.field("profile") == "spectrum")
    ).to_pylist()
    points = page.locator("#chart-spectrum svg .mark-symbol path")
    assert points.count() == len(curve["x"])


def test_head_without_a_curve_hides_its_chart(browser: Browser, tmp_path):
    audit = synthetic_profiles(synthetic_audit(2, 2, (64, 128)))
    lacking = (pc.field("layer") == 1) & (pc.field("profile") == "drift")
    assert audit.profiles is not None
    some = AuditResult(audit.heads, audit.manifest, audit.profiles.filter(~lacking))
    write_report(some, tmp_path / "report.html")
    page = browser.new_page()
    record = watch(page)
    open_report(page, tmp_path / "report.html")
    for row, visible in ((0, True), (2, False)):
        page.locator("#heads tbody tr").nth(row).locator("button").press("Enter")
        assert page.locator("#chart-drift").is_visible() == visible
    assert record.complaints == []
    page.close()


def test_printed_page_keeps_its_charts_within_the_paper(browser: Browser, report):
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    open_report(page, report)
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 700, "height": 990})
    widths = page.locator(".chart svg").evaluate_all(
        "all => all.map(svg => svg.getBoundingClientRect().right)"
    )
    assert max(widths) <= 700
    assert not page.locator(".filter").is_visible()
    background = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.close()


def test_page_carries_the_curves_to_four_digits(page, audit):
    payload = unpacked(page.locator("#payload").text_content() or "")
    lists, heads = payload["curves"]["lists"], payload["curves"]["heads"]
    assert audit.profiles is not None
    kinds = {profile.name for profile in PROFILES}
    drawn = [c for c in audit.profiles.to_pylist() if c["profile"] in kinds]
    assert sum(len(curves) for curves in heads.values()) == len(drawn)
    assert len(heads) == 270
    for curve in drawn[:40]:
        mine = heads[f"{curve['layer']}.{curve['head']}"]
        ((_, x, measured, _),) = [c for c in mine if c[0] == curve["profile"]]
        assert lists[x] == pytest.approx(curve["x"], rel=6e-4)
        assert lists[measured] == pytest.approx(curve["measured"], rel=6e-4)


def test_lists_that_heads_share_travel_once(audit):
    found = pooled(curves_of(audit.profiles))
    assert len({tuple(numbers) for numbers in found["lists"]}) == len(found["lists"])
    grids = {curve[1] for curves in found["heads"].values() for curve in curves}
    assert len(grids) <= len(PROFILES)


def test_audit_without_curves_shows_no_chart_of_them(browser: Browser, tmp_path):
    write_report(synthetic_audit(2, 2, (64, 128)), tmp_path / "report.html")
    page = browser.new_page()
    open_report(page, tmp_path / "report.html")
    assert page.locator(".profiles").count() == 0
    page.close()


def test_card_shows_a_head_without_its_sinks_and_the_tokens_that_stand_out(page, audit):
    page.locator("#heads tbody tr").nth(13).locator("button").press("Enter")
    mine = (pc.field("layer") == 1) & (pc.field("head") == 4)
    (row,) = audit.heads.filter(mine & (pc.field("n") == 8192)).to_pylist()
    for name in ("phase", "logit_variance", "tokens_needed", "verdict"):
        shown = page.locator(f"#card [data-field={name}_without_sinks]")
        assert shown.first.text_content() == show(row[f"{name}_without_sinks"])
    rotary = page.locator("#card [data-field=key_rank_before_rotary]")
    assert rotary.text_content() == show(row["key_rank_before_rotary"])
    (curve,) = audit.profiles.filter(
        mine & (pc.field("profile") == "value_mode_2")
    ).to_pylist()
    items = page.locator("#card [data-tokens=value_mode_2] li")
    assert items.count() == len(curve["x"]) == 5
    for index in range(5):
        word = curve["labels"][index].replace("\n", "↵").replace(" ", "␣")
        assert items.nth(index).locator("code").text_content() == word
        assert (
            items.nth(index)
            .text_content()
            .startswith(f"{word}{int(curve['x'][index]):,}")
        )


def test_tokens_are_shown_and_never_obeyed(page, audit):
    labels = [c["labels"] or [] for c in audit.profiles.to_pylist()]
    hostile = [i for i, words in enumerate(labels) if "</script>" in words]
    place = audit.profiles.slice(hostile[0], 1).to_pylist()[0]
    row = f"#heads tr[data-layer='{place['layer']}'][data-head='{place['head']}']"
    page.locator(f"{row} button").press("Enter")
    said = page.locator(f"#card [data-tokens={place['profile']}] code")
    assert "</script>" in said.all_text_contents()
    assert page.locator("#card script").count() == 0
