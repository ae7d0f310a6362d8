"""Every option of every command, given what no one should give it."""

import pytest
import typer.testing
from hypothesis import given
from hypothesis import strategies as st

from largeprompt.cli.app import app
from tests.command_line import Run

COMMANDS = typer.main.get_group(app).commands
NASTY = [
    "",
    "nan",
    "-1",
    "1e999",
    "9" * 5000,
    "\x1b[31m\n<script>",
    "b\udcff",  # a byte that is no UTF-8, as the shell hands it over
    "../..",
    "a" * 300,
]
NO_FOLDER = ["/dev/null", "/dev/null/out", "/proc/self/mem", "a" * 300, "9" * 5000]
CASES = [
    (name, parameter.name)
    for name, command in COMMANDS.items()
    for parameter in command.params
    if not getattr(parameter, "is_flag", False)
]


@pytest.fixture
def bases(tmp_path, monkeypatch) -> dict[str, list[str]]:
    """Arguments with which each command ends soon: at a model that is not there."""
    (tmp_path / "sweep.toml").write_text(
        'experiment = "law"\n[options]\nn = 16\nlogit_variance = 0.5\n'
    )
    (tmp_path / "text.txt").write_text("words")
    (tmp_path / "taken").write_text("mine")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    text = ["--text", "text.txt"]
    return {
        "plan": ["--n", "100", "--logit-variance", "1"],
        "audit": ["./nowhere", *text, "--lengths", "4"],
        "compare": ["nowhere", "nowhere"],
        "ablate": ["./nowhere", *text],
        "compress-eval": ["./nowhere", *text],
        "depth": ["./nowhere", *text],
        "concentration": ["--out", "taken"],
        "reproduce": ["--out", "taken"],
        "sweep": ["sweep.toml", "--list"],
        "status": ["nowhere"],
        "figures": ["nowhere"],
        "doctor": ["--no-check"],
    }


def arguments_with(name: str, parameter: str, value: str, base: list[str]) -> list[str]:
    """The arguments of a command, one of them replaced or added."""
    params = COMMANDS[name].params
    out = ["--out", "new"] if any(p.name == "out" for p in params) else []
    positional = [p.name for p in params if p.param_type_name == "argument"]
    if parameter in positional:
        place = positional.index(parameter)
        return [name, *base[:place], value, *base[place + 1 :], *out]
    (option,) = (p.opts[0] for p in params if p.name == parameter)
    if "--out" in base:
        out = []
    return [name, *base, *out, f"{option}={value}"]


def test_every_command_is_here(bases):
    assert set(bases) == set(COMMANDS)


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_a_nasty_argument_is_answered_or_refused_in_words(
    command, bases, tmp_path, name, parameter
):
    before = sorted(tmp_path.rglob("*"))
    for value in NO_FOLDER if parameter in ("out", "plot") else NASTY:
        run: Run = command(*arguments_with(name, parameter, value, bases[name]))
        assert run.status in (0, 1, 2), value
        assert run.status == 0 or run.stderr, value
        assert "\x1b" not in run.stderr
        assert sorted(tmp_path.rglob("*")) == before, value
    assert (tmp_path / "taken").read_text() == "mine"


@given(st.lists(st.text(max_size=9), max_size=4))
def test_plan_never_breaks_on_text(values):
    options = ["--n", "--eps", "--logit-variance", "--dim", "--correlation"]
    pairs = zip(options, values, strict=False)
    words = [word for option, value in pairs for word in (option, value)]
    result = typer.testing.CliRunner().invoke(app, ["plan", *words])
    assert result.exit_code in (0, 1, 2)
    assert not isinstance(result.exception, AssertionError | TypeError | KeyError)
