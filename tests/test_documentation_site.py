"""The built documentation: pages open from files and ask nobody for anything."""

import importlib
import pathlib
import re

import pytest

from tests.report.browser import chromium, watch

ROOMS = [
    "measures",
    "laws",
    "attention",
    "icl",
    "audit",
    "kernels",
    "hf",
    "experiments",
    "report",
]
SITE = pathlib.Path(__file__).parents[1] / "out" / "docs"

# The site is built by `make docs`, with packages that the other tests do without.
pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


def test_pages_open_offline_with_their_formulas_set(browser):
    pages = sorted([*SITE.glob("*.html"), *SITE.glob("api/*.html")])
    assert len(pages) > 20, "make docs builds them"
    formulas = 0
    for path in pages:
        page = browser.new_page()
        record = watch(page)
        page.goto(path.as_uri(), timeout=120_000)
        text = page.locator("body").inner_text()
        formulas += page.locator(".katex").count()
        assert [url for url in record.requests if url.startswith("http")] == []
        assert page.locator(".katex-error").count() == 0
        if path.name != "404.html":
            assert record.complaints == []
            assert "\\(" not in text
            assert "::: " not in text
        page.close()
    assert formulas > 1000


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_function_and_class_of_a_room_has_its_entry(room):
    text = (SITE / "api" / f"{room}.html").read_text(encoding="utf-8")
    entries = set(re.findall(rf'id="largeprompt\.{room}\.(?:\w+\.)?(\w+)"', text))
    names = importlib.import_module(f"largeprompt.{room}").__all__
    assert {name for name in names if not name.isupper()} - entries == set()


def test_a_page_that_asks_a_network_is_seen(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text('<script src="https://unpkg.invalid/katex.js"></script>')
    page = browser.new_page()
    record = watch(page)
    page.goto(path.as_uri())
    assert [url for url in record.requests if url.startswith("http")] != []
    page.close()
