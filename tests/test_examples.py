"""The example notebooks: every cell runs, and what it shows can be shown."""

import ast
import json
import pathlib
from typing import Any

import pytest

EXAMPLES = sorted((pathlib.Path(__file__).parents[1] / "examples").glob("*.ipynb"))
REPRESENTATIONS = ("_repr_mimebundle_", "_repr_html_", "__repr__")


def run(notebook: dict[str, Any], name: str) -> list[Any]:
    """Run a notebook's cells in one namespace; return what the last lines are."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    shown: list[Any] = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), f"{name}, cell {number}")
        *body, last = tree.body
        exec(compile(ast.Module(body, []), f"{name}, cell {number}", "exec"), namespace)
        if isinstance(last, ast.Expr):
            code = compile(ast.Expression(last.value), f"{name}, cell {number}", "eval")
            shown.append(eval(code, namespace))
        else:
            code = compile(ast.Module([last], []), f"{name}, cell {number}", "exec")
            exec(code, namespace)
    return shown


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_notebook_runs_and_what_it_shows_can_be_shown(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    shown = run(notebook, path.name)
    assert len(shown) == sum(cell["cell_type"] == "code" for cell in notebook["cells"])
    for value in shown:
        show = next(r for name in REPRESENTATIONS if (r := getattr(value, name, None)))
        assert show(), f"{type(value)} shows nothing"
    assert "report.html" in shown[-1]


def test_there_is_an_example_and_a_broken_one_is_noticed():
    assert EXAMPLES
    broken = {
        "cells": [{"cell_type": "code", "source": ["known = 1\n", "known + undefined"]}]
    }
    with pytest.raises(NameError):
        run(broken, "broken.ipynb")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_notebook_is_stored_without_what_it_once_showed(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") for cell in cells)
    assert all(cell.get("execution_count") is None for cell in cells)
