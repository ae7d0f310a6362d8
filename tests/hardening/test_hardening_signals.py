"""Runs that are interrupted or killed at any moment: whole results, or none."""

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from largeprompt.audit import load_audit
from largeprompt.errors import ResultError
from largeprompt.experiments import ConcentrationResult
from tests.report.synthetic import synthetic_audit

SECONDS = 12.0  # longer than a run takes, so that some moments are after its end
START = 0.3  # what the interpreter itself takes before it reads a line of ours

# a shell's background jobs ignore SIGINT; so would a child of a test run as one
LISTENING = (
    "import signal, runpy, sys; "
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
    "sys.argv[0] = 'largeprompt'; "
    "runpy.run_module('largeprompt', run_name='__main__')"
)


def started(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", LISTENING, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def moments(count: int, seed: int) -> list[float]:
    """Moments drawn once and for all, the same in every run."""
    return list(np.random.default_rng(seed).uniform(START, SECONDS, count))


def assert_whole_or_absent(out: Path) -> None:
    if (out / "manifest.json").exists():
        assert ConcentrationResult.load(out).table.num_rows > 0
    elif out.exists():
        pytest.fail(f"{out} holds {[path.name for path in out.iterdir()]}")


SMALL = ["--seeds", "2", "--queries", "2", "--prompts", "9", "--lengths", "9,40,90"]


def struck(which: signal.Signals, folder: Path, count: int, seed: int) -> list[int]:
    """Strike runs of `concentration` at drawn moments; return how they ended."""
    ends = []
    for number, moment in enumerate(moments(count, seed)):
        out = folder / str(number)
        process = started("concentration", "--out", out, *SMALL)
        time.sleep(moment)
        process.send_signal(which)
        _, told = process.communicate(timeout=60)
        ends.append(process.returncode)
        assert_whole_or_absent(out)
        if which is signal.SIGINT:
            # by the signal itself: before the interpreter listens, or as it shuts down
            assert process.returncode in (0, 130, -signal.SIGINT), told
            assert "Traceback" not in told
            assert {path.name for path in folder.iterdir()} <= {
                str(n) for n in range(number + 1)
            }
    return ends


def test_an_interruption_at_any_moment_leaves_a_whole_result_or_none(tmp_path):
    struck(signal.SIGINT, tmp_path, count=1, seed=0)


@pytest.mark.slow  # fifty runs, each for some seconds
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGKILL])
def test_no_moment_of_many_leaves_half_a_result(tmp_path, which):
    assert len(set(struck(which, tmp_path, count=25, seed=1))) > 1


def test_a_kill_while_results_are_replaced_is_never_taken_for_a_result(tmp_path):
    out = tmp_path / "out"
    synthetic_audit(2, 2, (64,)).save(out)
    replacing = (
        "import sys; from tests.report.synthetic import synthetic_audit; "
        "new = synthetic_audit(2, 2, (64, 128)); print('ready', flush=True)\n"
        "while True: new.save(sys.argv[1], overwrite=True)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", replacing, str(out)],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None, "it is a pipe"
    assert process.stdout.readline() == b"ready\n"
    time.sleep(moments(1, seed=2)[0] / 10)
    process.kill()
    process.communicate(timeout=60)
    with contextlib.suppress(ResultError):  # killed between two files of the result
        assert load_audit(out).heads.num_rows in (4, 8)
