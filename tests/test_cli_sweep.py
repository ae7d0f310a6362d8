"""The command line as a user types it: sweep, status, figures."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner, Result

from largeprompt.cli.concentration_files import write
from largeprompt.cli.figures import figures
from largeprompt.cli.status import status
from largeprompt.cli.sweep import sweep
from largeprompt.errors import ResultError
from largeprompt.experiments import Concentration, ConcentrationResult, measure_cells
from largeprompt.experiments.concentration import PUBLISHED
from largeprompt.experiments.sweep import specification
from tests.experiments.sweep_folders import ROOT, contents, probes, spec_file

LAW = """
experiment = "law"
[grid]
n = {from = 16, to = 1024, factor = 4}
logit_variance = [0.5, 2]
"""


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    for command in (sweep, status, figures):
        app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def said(answer: Result) -> str:
    return " ".join(answer.output.replace("│", " ").split())


@pytest.fixture(autouse=True)
def workers_find_the_probes(monkeypatch):
    inherited = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{inherited}")


@pytest.fixture
def law(tmp_path) -> Path:
    path = tmp_path / "law.toml"
    path.write_text(LAW)
    return path


def test_a_sweep_is_run_shown_and_drawn_from_what_was_saved(law, tmp_path):
    out = tmp_path / "out"
    answer = run("sweep", law, "--out", out, "--jobs", "1")
    assert answer.exit_code == 0, answer.output
    assert "8 cells: 8 done\n8 rows in" in answer.stdout
    assert pq.read_table(out / "results.parquet").num_rows == 8
    shown = run("status", out, "--cells")
    assert "8 cells of law: 8 done, 0 running, 0 failed, 0 waiting" in shown.stdout
    assert shown.stdout.count("n=16, logit_variance=") == 2
    drawn = run("figures", out, "--out", tmp_path / "drawn", "--suffix", "svg")
    assert drawn.exit_code == 0, drawn.output
    picture = (tmp_path / "drawn" / "sweep.svg").read_text()
    assert "law: parallel_mse against n" in picture
    again = run("sweep", law, "--out", out, "--jobs", "1")
    assert "8 cells: 8 done before" in again.stdout


def test_a_figure_is_the_same_bytes_without_what_is_not_a_result(law, tmp_path):
    out = tmp_path / "out"
    run("sweep", law, "--out", out, "--jobs", "1")
    drawn = []
    for name in ("one", "other"):
        run("figures", out, "--out", tmp_path / name, "--suffix", "svg")
        drawn.append((tmp_path / name / "sweep.svg").read_bytes())
        for place in ("records", "journals"):
            for path in (out / place).iterdir():
                path.unlink()
    assert drawn[0] == drawn[1]


def test_columns_of_a_figure_can_be_named_and_wrong_ones_are_refused(law, tmp_path):
    out = tmp_path / "out"
    run("sweep", law, "--out", out, "--jobs", "1")
    named = ("--x", "logit_variance", "--y", "inverse_ess", "--colour", "n")
    drawn = run("figures", out, *named, "--suffix", "svg")
    assert drawn.exit_code == 0, drawn.output
    assert "inverse_ess against logit_variance" in (out / "sweep.svg").read_text()
    for arguments, message in [
        (("--y", "inverse_es"), "the nearest is 'inverse_ess'"),
        (("--y", "phase"), "must be numbers to be drawn"),
        (("--suffix", "gif"), "must be a .svg, .png, .pdf or .html file"),
    ]:
        refused = run("figures", out, *arguments)
        assert refused.exit_code == 2
        assert message in said(refused)


def test_cells_are_listed_with_their_state_and_none_is_run(law, tmp_path):
    out = tmp_path / "out"
    listed = run("sweep", law, "--out", out, "--list")
    assert listed.stdout.count("waiting") == 8
    assert not out.exists()
    run("sweep", law, "--out", out, "--jobs", "1", "--shard", "1/2")
    listed = run("sweep", law, "--out", out, "--list", "--shard", "2/2")
    assert listed.stdout.count("waiting") == 4
    listed = run("sweep", law, "--out", out, "--list")
    assert listed.stdout.count("done") == 4


def test_a_failure_is_shown_with_its_traceback_and_the_exit_status_is_one(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PROBE_BROKEN", "0")
    spec, out = spec_file(tmp_path / "probes.toml", 3), tmp_path / "out"
    answer = run("sweep", spec, "--out", out, "--jobs", "1")
    assert answer.exit_code == 1
    assert "failed: number=0" in answer.output
    assert "raise ArithmeticError" in answer.output
    assert "3 cells: 2 done, 1 failed" in answer.stdout
    shown = run("status", out)
    assert "failed: number=0: ArithmeticError: cell 0 is broken" in shown.stdout
    fast = run("sweep", spec, "--out", tmp_path / "fast", "--jobs", "1", "--fail-fast")
    assert fast.exit_code == 1
    assert "3 cells: 2 waiting, 1 failed" in fast.stdout
    assert contents(tmp_path / "fast") == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--shard", "3/2"), "a shard i/N must have i from 1 to N"),
        (("--jobs", "0"), "greater than or equal to 1"),
        (("--jobs", "2", "--scheduler", "tcp://x:1"), "must be left out beside"),
    ],
)
def test_a_wrong_argument_of_a_sweep_is_a_usage_error(
    law, tmp_path, arguments, message
):
    answer = run("sweep", law, "--out", tmp_path / "out", *arguments)
    assert answer.exit_code == 2
    assert message in said(answer)
    assert not (tmp_path / "out").exists()


def test_a_wrong_specification_is_a_usage_error(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(LAW.replace("logit_variance", "logit_varience"))
    answer = run("sweep", path, "--out", tmp_path / "out")
    assert answer.exit_code == 2
    assert "the nearest is 'logit_variance'" in said(answer)


def test_a_directory_in_the_way_is_one_line_and_exit_status_one(law, tmp_path):
    (tmp_path / "file").write_text("mine")
    run_it = [sys.executable, "-m", "largeprompt", "sweep", law, "--out"]
    answer = subprocess.run(
        [*run_it, tmp_path / "file"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 1
    assert "is a file; a sweep is a directory" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_figures_of_a_concentration_are_redrawn_as_they_were(tmp_path):
    small = Concentration(
        PUBLISHED.laws[:1], (9, 40), 2, 2, 3, PUBLISHED.heads, bounds=False
    )
    cells = [cell for group in measure_cells(small) for cell in group]
    write(ConcentrationResult.of(small, cells, 0.0), tmp_path / "out", overwrite=False)
    drawn = run("figures", tmp_path / "out", "--out", tmp_path / "again")
    assert drawn.exit_code == 0, drawn.output
    pictures = [
        # clip paths are numbered through the life of a process
        re.sub(r"clip\d+", "", (tmp_path / place / "concentration.svg").read_text())
        for place in ("out", "again")
    ]
    assert pictures[0] == pictures[1]
    refused = run("figures", tmp_path / "out", "--x", "n")
    assert refused.exit_code == 2
    (tmp_path / "empty").mkdir()
    nothing = run("figures", tmp_path / "empty")
    assert isinstance(nothing.exception, ResultError)


def test_status_says_when_the_code_has_changed(law, tmp_path):
    out = tmp_path / "out"
    run("sweep", law, "--out", out, "--jobs", "1")
    manifest = (out / "sweep.json").read_text()
    code = re.search(r'"code": "(\w+)"', manifest)
    assert code is not None
    (out / "sweep.json").write_text(manifest.replace(code[1], "edited"))
    shown = run("status", out).stdout
    assert "8 cells not done by code edited were done by other code" in shown
    assert f"the code is {code[1]} now, the last run was of edited" in shown


def test_specifications_on_the_page_and_in_the_tree_are_read():
    page = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(specification(tomllib.loads(example)).cells) == 210
    saved = (ROOT / "experiments" / "sweep.toml").read_text(encoding="utf-8")
    assert len(specification(tomllib.loads(saved)).cells) >= 200
    assert len(probes(3).cells) == 3


@pytest.mark.parametrize("command", ["sweep", "status", "figures"])
def test_the_command_line_offers(command):
    shown = subprocess.run(
        [sys.executable, "-m", "largeprompt", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert command in shown.stdout
