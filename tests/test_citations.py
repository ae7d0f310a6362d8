"""What the code and the documents cite is in the bibliography."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[1]
CITED = re.compile(r"\[([a-z]+\d?(?:-[a-z]+)*:\d\d)[\],]")
PLACES = [
    *(ROOT / "src").rglob("*.py"),
    *(ROOT / "docs").glob("*.md"),
    *ROOT.glob("*.md"),
]


@pytest.fixture(scope="module")
def entries() -> list[str]:
    text = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    return re.findall(r"^@\w+\{([^,]+),", text, re.MULTILINE)


def lacking(texts: list[str], entries: list[str]) -> set[str]:
    return {key for text in texts for key in CITED.findall(text)} - set(entries)


def test_every_key_that_is_cited_has_an_entry(entries):
    texts = [path.read_text(encoding="utf-8") for path in PLACES]
    assert len({key for text in texts for key in CITED.findall(text)}) > 10
    assert lacking(texts, entries) == set()
    assert lacking(["as in [nobody:99], Theorem 1"], entries) == {"nobody:99"}


def test_no_entry_is_there_twice(entries):
    assert len(set(entries)) == len(entries)
