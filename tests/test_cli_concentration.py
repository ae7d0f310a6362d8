"""The command line as a user types it: concentration."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import typer
from safetensors.torch import save_file
from typer.testing import CliRunner, Result

from largeprompt.cli.concentration import concentration
from largeprompt.errors import ResultError
from largeprompt.experiments import ConcentrationResult

FILES = [
    "concentration.parquet",
    "concentration.png",
    "concentration.svg",
    "manifest.json",
    "slopes.json",
]
SMALL = ["--seeds", "2", "--queries", "2", "--prompts", "3", "--lengths", "9,40,90"]


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.command()(concentration)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_concentration_writes_its_table_slopes_manifest_and_figure(tmp_path):
    out = tmp_path / "out"
    answer = run("--out", out, "--law", "cube", "--law", "gaussian", *SMALL)
    assert answer.exit_code == 0, answer.output
    assert sorted(path.name for path in out.iterdir()) == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    result = ConcentrationResult.load(out)
    assert result.table.num_rows == 2 * 2 * 3 * 3
    assert f"written to {out}" in answer.stdout
    for slope in result.slopes:
        line = f"{slope.law:<12} {slope.quantity:<11} {slope.slope:7.3f}"
        assert line in answer.stdout
    assert json.loads((out / "slopes.json").read_text())[0]["confidence"] == 0.95


def test_preset_is_the_published_experiment_and_options_change_it(tmp_path):
    answer = run("--out", tmp_path / "out", *SMALL, "--no-bounds", "--value-norm", "2")
    assert answer.exit_code == 0, answer.output
    arguments = ConcentrationResult.load(tmp_path / "out").manifest["arguments"]
    assert arguments["laws"] == ["gaussian", "decaying", "condition-8"]
    assert arguments["heads"] == {
        "kind": "random",
        "dim": 4,
        "bilinear_norm": 0.22,
        "value_norm": 2.0,
    }
    assert arguments["lengths"] == [9, 40, 90]
    assert arguments["bounds"] is False


def test_concentration_of_a_head_from_a_file(tmp_path):
    eye = torch.eye(3)
    path = tmp_path / "head.safetensors"
    tensors = {"key": eye, "query": eye.clone(), "value": torch.ones(2, 3)}
    save_file({**tensors, "scale": torch.tensor([0.3])}, path)
    answer = run("--out", tmp_path / "out", "--head", path, "--law", "sphere", *SMALL)
    assert answer.exit_code == 0, answer.output
    arguments = ConcentrationResult.load(tmp_path / "out").manifest["arguments"]
    assert arguments["heads"]["name"] == "head.safetensors"
    assert arguments["heads"]["value"] == [2, 3]
    both = run("--out", tmp_path / "other", "--head", path, "--dim", "3")
    assert both.exit_code == 2
    assert "must be left out beside the file of a head" in both.output


def test_results_already_there_are_kept_unless_asked_otherwise(tmp_path):
    (tmp_path / "manifest.json").write_text("mine")
    answer = run("--out", tmp_path, *SMALL)
    assert isinstance(answer.exception, ResultError)
    assert "already holds manifest.json" in str(answer.exception)
    assert (tmp_path / "manifest.json").read_text() == "mine"
    assert run("--out", tmp_path, *SMALL, "--no-bounds", "--overwrite").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--law", "cauchy"], "law must be one of gaussian"),
        (["--preset", "other"], "preset must be published"),
        (["--lengths", "16,x"], "lengths must be whole numbers between commas"),
        (["--lengths", "16"], "lengths must be at least two"),
        (["--seeds", "1"], "seeds must be at least 2"),
        (["--bilinear-norm", "0"], "bilinear_norm must be finite and above 0"),
        (["--law", "laplace", "--bilinear-norm", "9"], "every tilt U z must lie"),
        (["--head", "nowhere.safetensors"], "does not exist"),
    ],
)
def test_a_wrong_argument_is_said_and_nothing_is_written(arguments, message, tmp_path):
    answer = run("--out", tmp_path / "out", *arguments)
    assert answer.exit_code == 2
    assert message in " ".join(answer.output.replace("│", " ").split())
    assert list(tmp_path.iterdir()) == []


TOLD = """
import typer
import largeprompt.experiments
from largeprompt.cli.concentration import concentration

measure_cells = largeprompt.experiments.measure_cells

def told(experiment):
    print("drawing", flush=True)
    yield from measure_cells(experiment)

largeprompt.experiments.measure_cells = told
typer.run(concentration)
"""


def test_an_interruption_leaves_nothing_behind(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", TOLD, "--out", tmp_path / "out", "--seeds", "100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None, "it is a pipe"
    assert process.stdout.readline() == "drawing\n"
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode in (1, 130)
    assert "Traceback" not in messages
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_offers_concentration():
    shown = subprocess.run(
        [sys.executable, "-m", "largeprompt", "concentration", "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0
    assert "--preset" in shown.stdout
