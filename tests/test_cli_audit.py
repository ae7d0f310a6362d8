"""The command line as a user types it: audit."""

import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from largeprompt.audit import AuditResult
from tests.command_line import Run


def arguments(tiny_folder, out, *more: str, model: str = "model") -> list[str]:
    start = ["audit", str(tiny_folder / model), "--text", str(tiny_folder / "text.txt")]
    return [*start, "--out", str(out), *more]


@pytest.fixture
def audit(tiny_folder, command):
    """Run the command on the tiny model and its text, unless told otherwise."""

    def run(out, *more: str, model: str = "model") -> Run:
        return command(*arguments(tiny_folder, out, *more, model=model))

    return run


def test_audit_writes_a_table_a_manifest_and_a_report(audit, tmp_path):
    run = audit(tmp_path / "out", "--lengths", "40,75", "--queries", "9")
    assert run.status == 0, run.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "heads.parquet",
        "manifest.json",
        "profiles.parquet",
        "report.html",
    ]
    table = pq.read_table(tmp_path / "out" / "heads.parquet")
    assert table.num_rows == 3 * 6 * 2  # layers, heads, lengths
    manifest = AuditResult.load(tmp_path / "out").manifest
    assert manifest["arguments"]["lengths"] == [40, 75]
    assert manifest["arguments"]["queries"] == 9
    assert "At 75 tokens" in run.stdout
    assert str(tmp_path / "out" / "report.html") in run.stdout
    assert "GiB at the peak" in run.stderr  # the estimate, before it starts


def test_audit_refuses_to_replace_a_result_unless_told(audit, tmp_path):
    first = audit(tmp_path / "out", "--lengths", "40")
    assert first.status == 0, first.stderr
    before = (tmp_path / "out" / "heads.parquet").read_bytes()
    again = audit(tmp_path / "out", "--lengths", "75")
    assert again.status == 1
    assert "already holds an audit; add --overwrite" in again.stderr
    assert (tmp_path / "out" / "heads.parquet").read_bytes() == before
    told = audit(tmp_path / "out", "--lengths", "75", "--overwrite")
    assert told.status == 0, told.stderr
    assert AuditResult.load(tmp_path / "out").manifest["arguments"]["lengths"] == [75]


@pytest.mark.parametrize(
    ("more", "model", "status", "message"),
    [
        (["--lengths", "40,many"], "model", 2, "lengths must be whole numbers"),
        (["--lengths", "40,3000"], "model", 2, "the model's context"),
        (["--eps", "-1"], "model", 2, "eps must be"),
        (["--queries", "0"], "model", 2, "queries"),
        ([], "nothing-here", 1, "no model at"),
        (["--text", "nothing-here.txt"], "model", 1, "no text at nothing-here.txt"),
        (["--layers", "3"], "model", 2, "layers must be from 0 to 2; got 3"),
        (["--layers", "one"], "model", 2, "layers must be numbers or ranges"),
        (["--heads", "2-6"], "model", 2, "heads must be from 0 to 5; got 6"),
        (["--limit", "39"], "model", 2, "limit must leave a length"),
        (["--dtype", "int8"], "model", 2, "dtype must be one of"),
        (["--window", "20"], "model", 2, "are for arrays"),
        (["--device", "cuda"], "model", 1, "finds no CUDA device"),
        (["--device", "cpu", "--device-map", "auto"], "model", 2, "got both"),
        ([], "nothing.safetensors", 1, "cannot read arrays from"),
    ],
)
def test_a_failure_is_one_clear_message_and_leaves_nothing(
    audit, tmp_path, monkeypatch, more, model, status, message
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    more = ["--lengths", "40", *more]
    run = audit(tmp_path / "out", *more, model=model)
    assert run.status == status, run.stderr
    assert message in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_options_choose_layers_heads_lengths_texts_and_precision(
    audit, tiny_folder, tmp_path
):
    run = audit(
        tmp_path / "out",
        *("--lengths", "40,75,3000", "--limit", "100", "--layers", "0,2"),
        *("--heads", "1-2", "--text", "prose", "--seed", "3", "--dtype", "float64"),
        *("--device", "cpu"),
    )
    assert run.status == 0, run.stderr
    result = AuditResult.load(tmp_path / "out")
    assert result.texts == [str(tiny_folder / "text.txt"), "prose"]
    rows = result.heads.to_pylist()
    assert {(row["layer"], row["head"]) for row in rows} == {
        (layer, head) for layer in (0, 2) for head in (1, 2)
    }
    assert {row["n"] for row in rows} == {40, 75}
    assert result.manifest["model"]["dtype"] == "float64"
    assert result.manifest["seed"] == 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "heads.parquet",
        "manifest.json",
        "profiles.parquet",
        "report-1.html",
        "report-2.html",
    ]
    assert run.stdout.count("At 75 tokens") == 2


def test_a_folder_that_cannot_be_written_is_refused_first(audit, tmp_path):
    (tmp_path / "file").write_text("")
    run = audit(tmp_path / "file" / "out", "--lengths", "40", model="nothing-here")
    assert run.status == 1
    assert "is a file" in run.stderr


@pytest.mark.parametrize("more", [[], ["--both-ways"], ["--window", "20"]])
def test_arrays_are_audited_without_a_model(command, tmp_path, more):
    generator = torch.Generator().manual_seed(0)
    arrays = {
        f"{name}{layer}": torch.randn(2, 60, 5, generator=generator)
        for name in "qkv"
        for layer in (0, 1)
    }
    save_file(arrays, tmp_path / "arrays.safetensors")
    argv = ["audit", str(tmp_path / "arrays.safetensors"), "--lengths", "30,60"]
    ran = command(*argv, "--out", tmp_path / "out", *more)
    assert ran.status == 0, ran.stderr
    result = AuditResult.load(tmp_path / "out")
    assert result.heads.num_rows == 2 * 2 * 2
    assert (tmp_path / "out" / "report.html").exists()
    assert "At 60 tokens" in ran.stdout


def test_a_killed_audit_goes_on_and_leaves_what_an_undisturbed_one_does(
    audit, tiny_folder, tmp_path
):
    options = ("--lengths", "40,75,200", "--text", "prose")
    argv = arguments(tiny_folder, tmp_path / "out", *options)
    process = subprocess.Popen(
        [sys.executable, "-m", "largeprompt", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    blocks = tmp_path / "out" / "unfinished"
    while process.poll() is None and len(list(blocks.glob("text-*.parquet"))) < 2:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert len(list(blocks.glob("text-*.parquet"))) >= 2
    assert not (tmp_path / "out" / "manifest.json").exists()
    other = audit(tmp_path / "out", "--lengths", "40")
    assert other.status == 1
    assert "holds an unfinished audit of another" in other.stderr
    resumed, whole = audit(tmp_path / "out", *options), audit(tmp_path / "2", *options)
    assert resumed.status == whole.status == 0, resumed.stderr
    assert not blocks.exists()
    one, two = (tmp_path / name / "heads.parquet" for name in ("out", "2"))
    assert one.read_bytes() == two.read_bytes()


def test_an_interruption_leaves_no_half_written_file(tiny_folder, tmp_path):
    argv = arguments(tiny_folder, tmp_path / "out", "--lengths", "40,75,200")
    process = subprocess.Popen(
        [sys.executable, "-m", "largeprompt", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert {path.name for path in tmp_path.iterdir()} <= {"out"}
    if (tmp_path / "out" / "manifest.json").exists():
        AuditResult.load(tmp_path / "out")  # whole, or it raises
