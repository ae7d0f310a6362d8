"""Pages show what a model or a text is called; they never obey it."""

import pytest
import vl_convert

from largeprompt.audit import compare_audits
from largeprompt.report import rendering
from largeprompt.report.comparison_page import comparison_page
from largeprompt.report.palette import VEGA_LITE
from tests.report.synthetic import synthetic_audit

HOSTILE = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>"
CHART = {
    "data": {"values": [{"token": HOSTILE, "weight": 1}]},
    "mark": "point",
    "encoding": {"x": {"field": "token"}, "y": {"field": "weight"}},
    "transform": [{"filter": "0 < datum.weight"}],
}


@pytest.mark.browser
def test_a_token_that_is_a_script_is_data_on_the_page_of_a_chart(browser, tmp_path):
    page = rendering.rendered(CHART, HOSTILE, HOSTILE, ".html").decode()
    assert HOSTILE not in page
    calm = rendering.rendered({**CHART, "data": {"values": []}}, "", "", ".html")
    assert page.count("<script") == calm.decode().count("<script")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    tab = browser.new_page()
    said: list[str] = []
    tab.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("canvas, svg")
    assert said == []
    assert tab.locator("img").count() == 0
    tab.close()


def test_a_chart_that_is_not_marked_would_obey_its_tokens():
    page = vl_convert.vegalite_to_html(CHART, vl_version=VEGA_LITE, bundle=True)
    assert "<script>alert(1)</script>" in page
    assert rendering.MARK not in page  # nothing else on a page is replaced


def test_a_picture_shows_markup_as_text():
    picture = rendering.rendered(CHART, HOSTILE, HOSTILE, ".svg").decode()
    assert "<script" not in picture
    assert "&lt;script&gt;" in picture


def test_a_name_that_is_markup_adds_no_element_to_a_comparison():
    calm, hostile = (synthetic_audit(1, 1, (64,), name=n) for n in ("calm", HOSTILE))
    page = comparison_page(compare_audits(hostile, calm))
    assert HOSTILE not in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)" in page
