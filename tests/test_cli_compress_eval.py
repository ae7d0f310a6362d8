"""The command line as a user types it: compress-eval."""

import json

import pyarrow.parquet as pq
import pytest

from tests.command_line import Run

FILES = [
    "errors.parquet",
    "manifest.json",
    "passkeys.json",
    "report.html",
    "summary.json",
]


@pytest.fixture
def run(tiny_folder, command):
    """Run the command on the tiny model and its text, unless told otherwise."""

    def call(out, *more: str, model: str = "model") -> Run:
        text = tiny_folder / "text.txt"
        sizes = ("--prompt-tokens", 200, "--continuation", 20)
        where = (tiny_folder / model, "--text", text, "--out", out)
        return command("compress-eval", *where, *sizes, *more)

    return call


def test_compress_eval_writes_its_files_and_forgets_its_cells(run, tmp_path):
    asked = ["--methods", "snapkv,performer", "--budgets", "0.8,0.9"]
    status, stdout, stderr = run(tmp_path / "out", *asked)
    assert status == 0, stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    methods = [(row["method"], row["budget"]) for row in summary]
    assert methods == [
        ("exact", 1.0),
        ("snapkv", 0.8),
        ("snapkv", 0.9),
        ("performer", 0.8),
        ("performer", 0.9),
    ]
    table = pq.read_table(tmp_path / "out" / "errors.parquet")
    assert table.num_rows == 4 * 3 * 2  # cells, layers, KV heads
    names = ["method", "budget", "text", "layer", "kv_head", "error", "bytes"]
    assert set(names) <= set(table.column_names)
    assert "snapkv 0.8: head error" in stdout
    before = (tmp_path / "out" / "summary.json").read_bytes()
    status, _, stderr = run(tmp_path / "out", *asked)
    assert status == 1
    assert "already holds" in stderr
    assert (tmp_path / "out" / "summary.json").read_bytes() == before


@pytest.mark.parametrize(
    ("more", "model", "status", "message"),
    [
        (["--budgets", "0.1,many"], "model", 2, "budgets must be numbers"),
        (["--budgets", "1.5"], "model", 2, "budgets must be between 0 and 1"),
        (["--methods", "snap-kv"], "model", 2, "did you mean 'snapkv'"),
        (["--prompt-tokens", "4000"], "model", 2, "context of 300 tokens"),
        (["--passkey-depths", "2"], "model", 2, "depths must be between 0 and 1"),
        ([], "nothing-here", 1, "no model at"),
        (["--text", "nothing-here.txt"], "model", 1, "no text at nothing-here.txt"),
    ],
)
def test_a_wrong_argument_is_one_clear_message_and_leaves_nothing(
    run, tmp_path, more, model, status, message
):
    found, _, stderr = run(tmp_path / "out", *more, model=model)
    assert found == status, stderr
    assert message in stderr
    assert list(tmp_path.iterdir()) == []


def test_a_failure_midway_keeps_finished_cells_and_no_result(run, tmp_path):
    status, _, stderr = run(
        tmp_path / "out", "--methods", "sinks-window,snapkv", "--budgets", "0.3"
    )
    assert status == 1
    assert "snapkv: " in stderr
    assert "too small" in stderr
    assert [path.name for path in tmp_path.iterdir()] == [".out.cells"]
    assert len(list((tmp_path / ".out.cells").iterdir())) == 2  # exact, sinks-window
