"""The command line run in this process, as its script would, and what is left of it."""

import sys
from typing import NamedTuple

import pytest

from largeprompt.cli import main


class Run(NamedTuple):
    """What a command left behind; white space and frames folded in its errors."""

    status: int
    stdout: str
    stderr: str


def run_command(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *arguments: object,
) -> Run:
    """Run a command; a traceback is no answer, whatever it was given."""
    monkeypatch.setattr(sys, "argv", ["largeprompt", *map(str, arguments)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main()
    stdout, stderr = capsys.readouterr()
    assert "Traceback" not in stderr
    folded = " ".join(stderr.replace("│", " ").split())
    return Run(int(left.value.code or 0), stdout, folded)
