"""What is written is true: code runs, links lead somewhere, numbers are recorded."""

import pathlib
import re

import pytest

import largeprompt
from benchmarks import pages

ROOT = pathlib.Path(__file__).parents[1]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/api/*.md")]
)
COMMANDS = ROOT / "docs" / "commands.md"  # written by `make docs`
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
ANCHORED = re.compile(r"\]\(([^)#\s:]*)#([^)]+)\)")


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
    absent = [t for t in targets if not (page.parent / t).exists()]
    assert [t for t in absent if (page.parent / t).resolve() != COMMANDS] == []


def missing_anchors(page: pathlib.Path) -> list[str]:
    """The links of a page to headings that are not there."""
    found = []
    for target, anchor in ANCHORED.findall(page.read_text(encoding="utf-8")):
        text = (page.parent / target if target else page).read_text(encoding="utf-8")
        headings = HEADING.findall(text)
        slugs = {re.sub(r"[^\w\- ]", "", h).lower().replace(" ", "-") for h in headings}
        found += [f"{target}#{anchor}"] if anchor not in slugs else []
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_anchors_on_a_page_are_headings(page):
    assert missing_anchors(page) == []


def test_links_that_lead_nowhere_are_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A head\n[here](#a-head), [there](#a-tail), [out](other.md)\n")
    assert missing_anchors(page) == ["#a-tail"]
    with pytest.raises(AssertionError):
        test_links_on_a_page_lead_somewhere(page)


def test_every_page_of_the_documentation_is_in_its_navigation_and_the_other_way():
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"([\w/-]+\.md)$", settings, re.MULTILINE))
    docs = ROOT / "docs"
    written = {str(p.relative_to(docs)) for p in PAGES if p.is_relative_to(docs)}
    assert listed == written | {COMMANDS.name}


def test_every_room_has_a_page_of_reference_and_every_public_name_its_line():
    rooms = {
        path.name.removesuffix(".py") for path in (ROOT / "src/largeprompt").iterdir()
    }
    written = {path.stem for path in (ROOT / "docs" / "api").glob("*.md")}
    private = {"__init__", "__main__", "__pycache__", "py.typed", "cli"}
    assert rooms - private == written - {"index"}
    index = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    names = set(re.findall(r"^\| `(\w+)` \|", index, re.MULTILINE))
    assert names == set(largeprompt.__all__) - {"__version__"}


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
