"""Results of an experiment: their files come whole, belong together, come back."""

import json
import time

import pytest

from largeprompt.audit.directory import write_directory
from largeprompt.errors import ResultError
from largeprompt.experiments import (
    Concentration,
    ConcentrationResult,
    RandomHeads,
    TokenLaw,
    measure_cells,
)
from largeprompt.experiments.result import DEFINITIONS, MANIFEST, SLOPES, TABLE

EXPERIMENT = Concentration(
    laws=(TokenLaw.GAUSSIAN, TokenLaw.LAPLACE),
    lengths=(9, 40),
    seeds=2,
    queries=2,
    prompts=3,
    heads=RandomHeads(dim=3, bilinear_norm=0.2, value_norm=0.75),
)


@pytest.fixture(scope="module")
def result() -> ConcentrationResult:
    started = time.perf_counter()
    cells = [cell for group in measure_cells(EXPERIMENT) for cell in group]
    return ConcentrationResult.of(EXPERIMENT, cells, started)


def test_table_has_a_row_for_each_law_seed_length_and_quantity(result):
    rows = result.table.to_pylist()
    keys = {(r["law"], r["seed"], r["n"], r["quantity"]) for r in rows}
    assert len(rows) == len(keys) == 2 * 2 * 2 * 3
    assert set(result.table.column_names) == set(DEFINITIONS)
    for row in rows:
        unknown = row["law"] == "laplace" or row["quantity"] == "U gradient"
        assert (row["exact"] is None) == unknown
        assert row["standard_error"] > 0


def test_manifest_says_what_was_run_and_with_what(result):
    manifest = result.manifest
    assert manifest["arguments"]["heads"]["bilinear_norm"] == 0.2
    assert manifest["arguments"]["laws"] == ["gaussian", "laplace"]
    assert set(manifest["versions"]) >= {"largeprompt", "torch", "python"}
    assert manifest["seconds"] > 0


def test_result_comes_back_as_it_was(result, tmp_path):
    write_directory(tmp_path / "out", result.files())
    loaded = ConcentrationResult.load(tmp_path / "out")
    assert loaded.table.equals(result.table)
    assert loaded.slopes == result.slopes
    assert loaded.manifest == result.manifest
    assert {p.name for p in (tmp_path / "out").iterdir()} == {TABLE, SLOPES, MANIFEST}
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", [TABLE, SLOPES, MANIFEST])
def test_truncated_or_missing_file_is_noticed(result, name, tmp_path):
    write_directory(tmp_path, result.files())
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ResultError, match=r"truncated|no JSON"):
        ConcentrationResult.load(tmp_path)
    path.unlink()
    with pytest.raises(ResultError, match="no concentration experiment there"):
        ConcentrationResult.load(tmp_path)


def test_another_format_is_refused(result, tmp_path):
    write_directory(tmp_path, result.files())
    (tmp_path / MANIFEST).write_text(json.dumps({"format": "something/1"}))
    with pytest.raises(ResultError, match="not of the format"):
        ConcentrationResult.load(tmp_path)


def test_files_are_not_replaced_unless_asked(tmp_path):
    (tmp_path / "kept.txt").write_text("kept")
    write_directory(tmp_path, {"a": b"1", "b": b"2"})
    with pytest.raises(ResultError, match=r"already holds a; choose another"):
        write_directory(tmp_path, {"a": b"3"})
    assert (tmp_path / "a").read_bytes() == b"1"
    write_directory(tmp_path, {"a": b"3"}, overwrite=True)
    assert (tmp_path / "a").read_bytes() == b"3"
    assert (tmp_path / "kept.txt").read_text() == "kept"


def test_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(ResultError, match="is a file; results are a directory"):
        write_directory(tmp_path / "file", {"a": b"1"}, overwrite=True)


def test_interruption_while_writing_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(self, content):
        if self.name == "b":
            raise KeyboardInterrupt
        return self.open("wb").close()

    monkeypatch.setattr("pathlib.Path.write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_directory(tmp_path / "out", {"a": b"1", "b": b"2"})
    assert list(tmp_path.iterdir()) == []
