"""The command line as a user types it: plan."""

import json
import math
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from largeprompt.cli.plan import plan
from largeprompt.laws import gaussian_law, solve


def largeprompt(arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "largeprompt", *shlex.split(arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_plan_solves_for_the_length_and_back():
    forward = largeprompt("plan --logit-variance 2 --dim 64 --eps 0.05 --json")
    assert forward.returncode == 0, forward.stderr
    answer = json.loads(forward.stdout)
    assert list(answer) == ["n", "eps", "logit_variance", "dim", "inverse_ess", "phase"]
    assert answer["n"] == 2964
    assert answer["eps"] <= 0.05
    assert answer["phase"] == "linear"
    back = largeprompt(f"plan --n {answer['n']} --eps 0.05 --json")
    assert json.loads(back.stdout)["logit_variance"] == pytest.approx(2, rel=1e-3)


def test_plan_answers_in_under_a_second():
    best = min(timed_plan() for _ in range(3))
    assert best < 1.0


def timed_plan() -> float:
    start = time.perf_counter()
    assert largeprompt("plan --n 5000 --logit-variance 3").returncode == 0
    return time.perf_counter() - start


def test_plan_says_its_answer_in_words():
    run = largeprompt("plan --n 4096 --logit-variance 9")
    assert "4,096 tokens, logit variance 9" in run.stdout
    assert "phase: heavy-tailed" in run.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ("plan --n 100 --eps 0.01", 1, "uniform weights leave 0.1"),
        ("plan --logit-variance 100 --eps 0.01", 1, "no prompt of up to 1e+15 tokens"),
        ("plan --n 100", 2, "exactly one of n, eps and logit_variance"),
        ("plan --n 0 --logit-variance 1", 2, "n must be a number from 1"),
        ("plan --n 10 --logit-variance nan", 2, "logit_variance must be a number"),
        ("plan --n ten --logit-variance 1", 2, "Invalid value for '--n'"),
        ("plain", 2, "No such command"),
    ],
)
def test_a_failure_is_one_clear_message_and_a_status(arguments, status, message):
    run = largeprompt(arguments)
    assert run.returncode == status
    assert message in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


def in_process(arguments: str) -> Result:
    app = typer.Typer()
    app.command()(plan)
    return CliRunner().invoke(app, shlex.split(arguments))


def answer_to(arguments: str) -> dict:
    run = in_process(f"{arguments} --json")
    assert run.exit_code == 0, run.output
    return json.loads(run.stdout)


def test_plan_with_every_option_but_the_figure_loads_nothing_heavy():
    code = (
        "import sys; from largeprompt.cli.app import app; "
        "app('plan --n 900 --logit-variance 1 --bound --extend 1000 "
        "--correlation 0.5'.split(), standalone_mode=False); "
        "print(*{m.split('.')[0] for m in sys.modules})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(run.stdout.splitlines()[-1].split())
    assert "numpy" in loaded
    assert loaded.isdisjoint({"torch", "scipy", "altair", "vl_convert", "pyarrow"})


def test_bound_shows_the_proven_length_and_error_beside_the_exact_ones():
    answer = answer_to("--logit-variance 2 --eps 0.05 --bound")
    assert list(answer)[:6] == [
        "n",
        "eps",
        "logit_variance",
        "dim",
        "inverse_ess",
        "phase",
    ]
    assert answer["n"] == 2964
    assert answer["bound"]["n"] > 2964
    assert answer["bound"]["target"] == 0.05
    assert answer["bound"]["eps"] > answer["eps"]
    words = in_process("--logit-variance 2 --eps 0.05 --bound").stdout
    assert f"proven: 0.05 from {answer['bound']['n']:,} tokens on" in words


def test_bound_that_does_not_exist_says_why():
    answer = answer_to("--n 50 --logit-variance 9 --bound")
    assert answer["bound"]["eps"] is None
    assert "beyond" in answer["bound"]["obstacle"]
    words = in_process("--n 50 --logit-variance 9 --bound").stdout
    assert "OutputBound bounds the mean square beyond" in words


def test_extend_and_correlation_add_their_sections():
    answer = answer_to("--n 900 --logit-variance 1 --extend 2000 --correlation 0.7")
    assert list(answer)[6:] == ["extension", "correlation"]
    assert 0 < answer["extension"]["drift"] < answer["eps"]
    assert answer["correlation"]["n"] > 900
    words = in_process(
        "--n 900 --logit-variance 1 --extend 2000 --correlation 0.7"
    ).stdout
    assert "growing to 2,000 tokens moves the output by" in words
    assert "a token of correlation 0.7 counts as" in words


@pytest.mark.parametrize(
    ("name", "text", "dim"),
    [
        ("s.txt", "# eigenvalues\n4\n2\n\n1  # the last\n", 7 / 3),
        ("s.csv", "4,0.2\n2,0.3\n1,0.5\n", 7 / 1.9),
        ("s.json", '{"value_eigenvalues": [4, 2, 1]}', 7 / 3),
        ("t.json", '{"value_eigenvalues": [3, 1], "shares": [1, 0]}', 4 / 3),
    ],
)
def test_spectrum_of_one_query_takes_the_place_of_the_dimension(
    name, text, dim, tmp_path
):
    path = tmp_path / name
    path.write_text(text)
    answer = answer_to(f"--spectrum {path} --n 500 --logit-variance 1.5")
    assert answer["dim"] == pytest.approx(dim)
    law = gaussian_law(500, 1.5)
    square = law.mean_square_error(response=1.5 / dim, variance=1.0)
    assert answer["eps"] == pytest.approx(math.sqrt(square))
    assert answer["eps"] != pytest.approx(solve(n=500, logit_variance=1.5).eps)


def test_spectrum_that_does_not_see_the_tilt_has_no_dimension_in_json(tmp_path):
    path = tmp_path / "s.json"
    path.write_text('{"value_eigenvalues": [1], "shares": [0]}')
    assert answer_to(f"--spectrum {path} --n 9 --logit-variance 1")["dim"] is None


QUERY = '{"logit_eigenvalues": [0.3, 0.1], "responses": [0.4, 0.1], "variance": 2}'


def test_spectrum_of_a_query_law_gives_the_averaged_error(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(QUERY)
    answer = answer_to(f"--spectrum {path} --eps 0.1")
    assert list(answer)[:3] == ["n", "eps", "logit_variance"]
    assert answer["eps"] <= 0.1
    assert answer["rate"] == 1
    words = in_process(f"--spectrum {path} --eps 0.1").stdout
    assert "random query of mean logit variance 0.4" in words
    assert "falls like n^-1 (proven)" in words


@pytest.mark.parametrize("suffix", [".svg", ".png", ".html"])
def test_plot_draws_the_plan(suffix, tmp_path):
    path = tmp_path / f"plan{suffix}"
    assert in_process(f"--n 900 --logit-variance 2 --plot {path}").exit_code == 0
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_size > 5000


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("4\n2 0.5\n", "--n 5 --eps 0.9", "got lines of [1, 2] numbers"),
        ("1 2 3\n", "--n 5 --eps 0.9", "got lines of [3] numbers"),
        ("four\n", "--n 5 --eps 0.9", "could not convert string to float"),
        ("", "--n 5 --eps 0.9", "must hold at least one number; got none"),
        ("-1\n", "--n 5 --eps 0.9", "finite numbers of at least 0; got -1"),
        ("1\n", "--n 5 --eps 0.9 --dim 3", "--dim must be left out"),
        ('{"eigenvalues": [1]}', "--n 5", "a spectrum must have the fields"),
        ("[1, 2]", "--n 5", "a spectrum must have the fields"),
        ('{"value_eigenvalues": ', "--n 5", "must hold a spectrum"),
        ('{"value_eigenvalues": [[1]]}', "--n 5", "must hold a spectrum"),
        (QUERY, "--n 5 --logit-variance 1", "--logit-variance must be left out"),
        (QUERY, "--n 5 --bound", "need one query"),
        (QUERY, "--n 5 --eps 0.1", "exactly one of n and eps"),
    ],
)
def test_a_spectrum_that_cannot_be_used_is_refused(
    content, arguments, message, tmp_path
):
    path = tmp_path / ("s.json" if content[:1] in ("{", "[") else "s.txt")
    path.write_text(content)
    run = in_process(f"--spectrum {path} {arguments}")
    assert run.exit_code == 2
    assert message in " ".join(run.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--extend 100", "the longer prompt must have more than 100 tokens"),
        ("--correlation 1", "strictly between -1 and 1"),
        ("--plot plan.gif", "a figure must be a .svg, .png, .pdf or .html file"),
        ("--spectrum nowhere.json", "does not exist"),
    ],
)
def test_an_option_outside_its_range_is_refused(arguments, message, monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)
    run = in_process(f"--n 100 --logit-variance 1 {arguments}")
    assert run.exit_code == 2
    assert message in " ".join(run.output.replace("│", " ").split())


def test_the_command_line_knows_its_version():
    assert largeprompt("--version").stdout.startswith("largeprompt 0.")
