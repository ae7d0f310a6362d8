"""The house: which room may import which, and who owns a heavy library."""

import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = ROOT / "src" / "largeprompt"
ROOMS = [
    "errors",
    "measures",
    "laws",
    "attention",
    "icl",
    "audit",
    "compress",
    "kernels",
    "hf",
    "experiments",
    "report",
    "cli",
    "testing",  # last: nothing in the library may import it
]
RANK = {name: rank for rank, name in enumerate(ROOMS)}
MAY_IMPORT = {"laws": {"errors", "laws"}}  # stricter than the order of the rooms
OWNERS = {
    "numba": {"kernels"},
    "triton": {"kernels"},
    "dask": {"experiments"},
    "distributed": {"experiments"},
    "transformers": {"hf"},
    "altair": {"report"},
    "jinja2": {"report"},
    "vl_convert": {"report"},
    "rich": {"cli"},
    "typer": {"cli"},
}
FORBIDDEN = {"laws": {"torch"}, "measures": {"pyarrow"}}
FILES = sorted(SOURCE.rglob("*.py"))


def imports(path: pathlib.Path):
    """Every module that the file imports, as a list of its dotted parts."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None, "an absolute import names its module"
            module = node.module.split(".")
            if module == ["largeprompt"]:
                yield from ([*module, alias.name] for alias in node.names)
            else:
                yield module


def room(path: pathlib.Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def faults(path: pathlib.Path) -> list[str]:
    """What the file imports that its room may not."""
    me, found = room(path), []
    for top, *rest in imports(path):
        if top == "largeprompt" and rest:
            other = rest[0]
            allowed = MAY_IMPORT.get(me, {r for r in ROOMS if RANK[r] <= RANK[me]})
            if other not in allowed:
                found.append(f"{me} may not import largeprompt.{other}")
        if me not in OWNERS.get(top, {me}) or top in FORBIDDEN.get(me, ()):
            found.append(f"{me} may not import {top}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_to_earlier_rooms_and_heavy_ones_have_one_owner(path):
    if path.name in {"__init__.py", "__main__.py"} and path.parent == SOURCE:
        return  # the façade names everything, lazily; the entry calls the last room
    assert room(path) in RANK, f"{path} stands in no room that ROOMS knows"
    assert faults(path) == []


def test_the_check_of_imports_sees_an_import_that_points_the_wrong_way(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    planted = tmp_path / "laws" / "planted.py"
    planted.parent.mkdir()
    planted.write_text("import torch\nfrom largeprompt.audit import AuditResult\n")
    assert faults(planted) == [
        "laws may not import torch",
        "laws may not import largeprompt.audit",
    ]


def test_files_are_short_and_none_is_empty():
    lengths = {p: len(p.read_text().splitlines()) for p in FILES}
    assert max(lengths.values()) <= 400
    assert min(lengths.values()) > 0
    assert sorted(lengths.values())[len(lengths) // 2] < 150


def loaded_by(statement: str) -> set[str]:
    """The top-level modules in a fresh interpreter after the statement."""
    code = f"import sys; {statement}; print(*{{m.split('.')[0] for m in sys.modules}})"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    heavy = {"torch", "numpy", "scipy", "pyarrow", "transformers", "altair"}
    assert loaded_by("import largeprompt").isdisjoint(heavy)


def test_laws_and_the_command_line_load_neither_torch_nor_scipy():
    statement = "import largeprompt.laws, largeprompt.cli.app"
    loaded = loaded_by(statement)
    assert "numpy" in loaded
    assert loaded.isdisjoint({"torch", "scipy", "pyarrow", "transformers", "altair"})


def test_every_public_name_of_the_facade_resolves():
    import largeprompt

    for name in largeprompt.__all__:
        assert getattr(largeprompt, name) is not None
