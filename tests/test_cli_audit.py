"""The command line as a user types it: audit."""

import signal
import subprocess
import sys
import time
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from largeprompt.audit import AuditResult
from largeprompt.cli import main
from tests.hf.tiny import tiny_model, tiny_tokenizer

TEXT = "Softmax over a long prompt is an operator on the law of its tokens. " * 9


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of a few thousand weights in a folder, and a text beside it."""
    folder = tmp_path_factory.mktemp("tiny")
    tiny_model("llama").save_pretrained(folder / "model")
    tiny_tokenizer().save_pretrained(folder / "model")
    (folder / "text.txt").write_text(TEXT)
    return folder


def arguments(folder, out, *more: str, model: str = "model") -> list[str]:
    start = ["audit", str(folder / model), "--text", str(folder / "text.txt")]
    return [*start, "--out", str(out), *more]


class Run(NamedTuple):
    """What a command left behind; white space and frames folded in its errors."""

    status: int
    stdout: str
    stderr: str


@pytest.fixture
def audit(folder, monkeypatch, capsys):
    """Run the command in this process, as its script would."""

    def run(out, *more: str, model: str = "model") -> Run:
        argv = ["largeprompt", *arguments(folder, out, *more, model=model)]
        monkeypatch.setattr(sys, "argv", argv)
        with pytest.raises(SystemExit) as left:
            main()
        stdout, stderr = capsys.readouterr()
        assert "Traceback" not in stderr
        folded = " ".join(stderr.replace("│", " ").split())
        return Run(int(left.value.code or 0), stdout, folded)

    return run


def test_audit_writes_a_table_a_manifest_and_a_report(audit, tmp_path):
    run = audit(tmp_path / "out", "--lengths", "40,75", "--queries", "9")
    assert run.status == 0, run.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "heads.parquet",
        "manifest.json",
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
    ],
)
def test_a_failure_is_one_clear_message_and_leaves_nothing(
    audit, tmp_path, more, model, status, message
):
    more = ["--lengths", "40", *more]
    run = audit(tmp_path / "out", *more, model=model)
    assert run.status == status, run.stderr
    assert message in run.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("pause", [3.0, 6.0])
def test_an_interruption_leaves_no_half_written_file(folder, tmp_path, pause):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "largeprompt"),
            *arguments(folder, tmp_path / "out", "--lengths", "40,75,200"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(pause)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    if (tmp_path / "out").exists():
        AuditResult.load(tmp_path / "out")  # whole, or it raises
    assert {path.name for path in tmp_path.iterdir()} <= {"out"}
