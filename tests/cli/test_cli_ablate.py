"""The command line as a user types it: ablate and depth."""

import json

import pytest

from largeprompt.hf.ablation_evaluation import Intact
from largeprompt.hf.ablation_result import AblationResult
from largeprompt.hf.token_law_result import TokenLawResult
from tests.command_line import Run

KEPT = ["--tokens", "90", "--keep-sinks", "2", "--keep-window", "6"]


@pytest.fixture
def run(tiny_folder, command):
    """Run a command on the tiny model and its text, unless told otherwise."""

    def run(name: str, out, *more: str, model: str = "model") -> Run:
        text = tiny_folder / "text.txt"
        return command(name, tiny_folder / model, "--out", out, "--text", text, *more)

    return run


def test_ablate_writes_a_table_a_summary_and_a_curve(run, tmp_path):
    ran = run("ablate", tmp_path / "out", *KEPT, "--heads", "0.1,2.5", "--curve")
    assert ran.status == 0, ran.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "ablation.html",
        "ablation.parquet",
        "ablation.svg",
        "manifest.json",
        "summary.json",
    ]
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]  # nothing unfinished
    result = AblationResult.load(tmp_path / "out")
    assert result.rows[0]["heads"] == ["0.1", "2.5"]
    kept = {"sinks": 2, "window": 6, "bulk": "finite"}
    assert result.manifest["replacement"] == kept
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["sets"]["0.1,2.5"]["kl"] == result.rows[0]["kl"]
    assert "0.1,2.5" in ran.stdout
    assert "nats more" in ran.stdout
    assert str(tmp_path / "out") in ran.stdout


def test_the_literal_limit_is_another_replacement(run, tmp_path):
    for bulk in ("finite", "limit"):
        ran = run("ablate", tmp_path / bulk, *KEPT, "--heads", "all", "--bulk", bulk)
        assert ran.status == 0, ran.stderr
        assert not (tmp_path / bulk / "ablation.svg").exists()
    finite, limit = (
        AblationResult.load(tmp_path / bulk).rows[0]["kl"]
        for bulk in ("finite", "limit")
    )
    assert finite != limit


def test_ablate_refuses_to_replace_a_result_unless_told(run, tmp_path):
    more = [*KEPT, "--heads", "0.0"]
    assert run("ablate", tmp_path / "out", *more).status == 0
    again = run("ablate", tmp_path / "out", *more)
    assert again.status == 1
    assert "already holds ablation.parquet" in again.stderr
    assert run("ablate", tmp_path / "out", *more, "--overwrite").status == 0


def test_an_interrupted_command_goes_on(run, tmp_path, monkeypatch):
    measured, calls = Intact.effect, []

    def interrupted(self, heads, replacement):
        calls.append(heads)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return measured(self, heads, replacement)

    more = [*KEPT, "--heads", "0.0", "--heads", "0.1"]
    monkeypatch.setattr(Intact, "effect", interrupted)
    assert run("ablate", tmp_path / "out", *more).status == 130
    assert not (tmp_path / "out").exists()
    assert run("ablate", tmp_path / "out", *more).status == 0
    assert len(calls) == 3
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


@pytest.mark.parametrize(
    ("more", "model", "status", "message"),
    [
        (["--heads", "7.0"], "model", 2, "heads from 0.0 to 2.5; got 7.0"),
        (["--heads", "some"], "model", 2, "heads must be linear-ones"),
        (["--heads", ""], "model", 2, "heads must be linear-ones"),
        (["--tokens", "20"], "model", 2, "tokens must be at least 25"),
        (["--tokens", "3000"], "model", 2, "the model's context"),
        (["--bulk", "none"], "model", 2, "bulk must be limit or finite; got 'none'"),
        (["--keep-sinks", "-1"], "model", 2, "sinks must be at least 0"),
        (["--eps", "1e-9"], "model", 1, "finds no head for linear-ones"),
        ([], "nothing-here", 1, "no model at"),
        (["--text", "nothing-here.txt"], "model", 1, "no text at nothing-here.txt"),
    ],
)
def test_a_wrong_ablation_is_one_clear_message(
    run, tmp_path, more, model, status, message
):
    ran = run("ablate", tmp_path / "out", *KEPT, *more, model=model)
    assert ran.status == status, ran.stderr
    assert message in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_text_shorter_than_asked_for_is_refused(run, tmp_path):
    (tmp_path / "brief.txt").write_text("brief")
    for command in ("ablate", "depth"):
        ran = run(
            command,
            tmp_path / "out",
            "--text",
            str(tmp_path / "brief.txt"),
            "--tokens",
            "100",
        )
        assert ran.status == 1
        assert "brief.txt has 5 tokens" in ran.stderr


def test_a_file_in_the_way_is_refused_before_any_work(run, tmp_path):
    (tmp_path / "out").write_text("mine")
    for command in ("ablate", "depth"):
        ran = run(command, tmp_path / "out", model="not-even-loaded")
        assert ran.status == 1
        assert "is a file" in ran.stderr
    assert (tmp_path / "out").read_text() == "mine"


def test_depth_writes_a_table_and_a_figure(run, tmp_path):
    ran = run("depth", tmp_path / "out", "--tokens", "60", "--directions", "3")
    assert ran.status == 0, ran.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "manifest.json",
        "token_law.html",
        "token_law.parquet",
        "token_law.svg",
    ]
    assert TokenLawResult.load(tmp_path / "out").table.num_rows == 4 + 3 * 2
    again = run("depth", tmp_path / "out", "--tokens", "60")
    assert again.status == 1
    assert "already holds" in again.stderr
    wrong = run("depth", tmp_path / "other", "--tokens", "9")
    assert wrong.status == 2
    assert "tokens must be at least 36" in wrong.stderr
