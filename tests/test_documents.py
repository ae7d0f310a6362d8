"""What is written is true: code runs, links lead somewhere, numbers are recorded."""

import pathlib
import re

import pytest

from benchmarks import pages

ROOT = pathlib.Path(__file__).parents[1]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, namespace = page.read_text(encoding="utf-8"), {}
    for block in FENCE.finditer(text):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(page), "exec"), namespace)


def test_the_readme_shows_code_and_the_code_prints_what_is_expected(capsys):
    block = FENCE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert block is not None
    exec(block[1], {})
    error, expected = map(float, re.findall(r"\d\.\d+", capsys.readouterr().out))
    assert 0 < error < 3 * expected


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_on_a_page_lead_somewhere(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    assert [t for t in targets if not (page.parent / t).exists()] == []


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda p: p.name)
def test_numbers_on_a_page_are_the_recorded_ones(page):
    text = page.read_text(encoding="utf-8")
    assert pages.BLOCK.search(text), "the page has a table of numbers"
    assert "Nothing is recorded yet" not in text
    assert pages.filled(text) == text


def test_a_number_edited_by_hand_is_seen():
    text = pages.filled((ROOT / "README.md").read_text(encoding="utf-8"))
    assert pages.filled(text.replace("time per value", "time per valve")) == text


def test_equations_cited_in_the_code_exist_in_the_theory():
    theory = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    tags = set(re.findall(r"\\tag\{(\d+\.\d+)\}", theory))
    sections = set(re.findall(r"^##+ (\d+(?:\.\d+)?)", theory, re.MULTILINE))
    cited = re.compile(r"docs/theory\.md, (section|equations?) \(?(\d+(?:\.\d+)?)")
    for path in (ROOT / "src").rglob("*.py"):
        for kind, number in cited.findall(path.read_text(encoding="utf-8")):
            known = sections if kind == "section" else tags
            assert number in known, f"{path.name} cites {kind} {number}"
