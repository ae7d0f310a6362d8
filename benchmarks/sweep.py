"""A sweep with a worker and then the runner killed: what is begun again, what is lost.

python -m benchmarks.sweep          # without recording anything
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import torch

from benchmarks.record import ROOT, Row
from largeprompt.experiments.sweep import (
    Processes,
    Specification,
    Status,
    read_status,
    run_sweep,
    specification,
)
from largeprompt.experiments.sweep.catalogue import experiment_named
from largeprompt.experiments.sweep.folder import SweepFolder
from largeprompt.experiments.sweep.journal import read_journals
from largeprompt.experiments.sweep.options import resolved

TESTS = ["tests/experiments/test_sweep_survival.py", "tests/test_cli_sweep.py"]
DISTRIBUTIONS = ["largeprompt", "torch", "numpy", "pyarrow"]
SPEC = ROOT / "experiments" / "sweep.toml"
FIGURE = ROOT / "docs" / "images" / "sweep.svg"
JOBS = 2
REPEATS = 3


def measure() -> list[Row]:
    """Run the sweep through both deaths, draw it, and time a smaller one."""
    with tempfile.TemporaryDirectory() as folder:
        broken, whole = pathlib.Path(folder) / "broken", pathlib.Path(folder) / "whole"
        seconds = _through_deaths(broken)
        _command("sweep", SPEC, "--out", whole, "--jobs", str(JOBS)).wait()
        status = read_status(broken)
        differing = sum(
            path.read_bytes() != (whole / "cells" / path.name).read_bytes()
            for path in (broken / "cells").iterdir()
        )
        drawing = _command("figures", broken, "--out", folder, "--suffix", "svg")
        drawing.wait()
        FIGURE.write_bytes((pathlib.Path(folder) / "sweep.svg").read_bytes())
    return [
        *_counts(status, differing, seconds),
        _overhead(),
    ]


def _through_deaths(out: pathlib.Path) -> float:
    """Kill a worker at a sixth and the runner at half of the cells, then resume."""
    began = time.perf_counter()
    cells = out / "cells"
    runner = _command("sweep", SPEC, "--out", out, "--jobs", str(JOBS))
    _until(lambda: cells.exists() and len(list(cells.iterdir())) >= 35)
    _kill_a_worker_in_mid_cell(out)
    _until(lambda: len(list(cells.iterdir())) >= 105)
    runner.kill()
    runner.wait()
    resumed = _command("sweep", SPEC, "--out", out, "--jobs", str(JOBS))
    assert resumed.wait() == 0, "nothing fails in this sweep"
    return time.perf_counter() - began


def _kill_a_worker_in_mid_cell(out: pathlib.Path) -> None:
    """Stop a worker, kill it if it is in mid-cell, else let it go on and try again."""
    while True:
        for journal in (out / "journals").iterdir():
            pid = int(journal.stem.rpartition("-")[2])
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.01)
            last = journal.read_text().strip().splitlines()[-1:]
            if last and _is_in_mid_cell(out, last[0]):
                os.kill(pid, signal.SIGKILL)
                return
            os.kill(pid, signal.SIGCONT)


def _is_in_mid_cell(out: pathlib.Path, event: str) -> bool:
    """Whether a worker's last event is of a cell whose result is not there yet."""
    said = json.loads(event)
    result = out / "cells" / f"{said['cell']}.parquet"
    return said["event"] == "started" and not result.exists()


def _counts(status: Status, differing: int, seconds: float) -> list[Row]:
    """How often cells were begun, and what came of them."""
    details = {"specification": dict(status.sweep.content), "jobs": JOBS}
    counts = {
        "cells, prompt length by covariance by seed": len(status.states),
        "cells begun, one worker and then the runner killed": status.starts,
        "cells begun again": status.reruns,
        "cells failed": len(status.failures),
        "cells whose bytes differ from an undisturbed run": differing,
    }
    rows = [
        Row("sweep", name, "", count, count, count, details)
        for name, count in counts.items()
    ]
    return [
        *rows,
        Row("sweep", "time with both deaths", "s", seconds, seconds, seconds, details),
    ]


def _overhead() -> Row:
    """Interleave sweeps on one worker with calls of the same function in a loop."""
    shared = {"queries": 4, "prompts": 8, "n": 64}
    grid = {"law": ["gaussian", "decaying"], "seed": {"from": 0, "to": 49}}
    sweep = specification(
        {"experiment": "concentration", "options": shared, "grid": grid}
    )
    torch.set_num_threads(1)
    _looped(sweep)  # what is imported and planned at first use
    extra, loops, sweeps = [], [], []
    for _ in range(REPEATS):
        loops.append(_looped(sweep))
        sweeps.append(_swept(sweep))
        extra.append(1e3 * (sweeps[-1] - loops[-1]))
    return Row(
        "sweep",
        "overhead of a cell over calling its function in a loop",
        "ms",
        statistics.median(extra),
        min(extra),
        max(extra),
        {"cells": len(sweep.cells), "loop_seconds": loops, "sweep_seconds": sweeps},
    )


def _looped(sweep: Specification) -> float:
    """Seconds of a cell when its function is called in a loop."""
    experiment = experiment_named(sweep.experiment)
    cells = [
        (resolved(experiment, cell.configuration), cell.key)
        for cell in sweep.cells.values()
    ]
    began = time.perf_counter()
    for instance, key in cells:
        instance.rows(key, pathlib.Path("nowhere"))
    return (time.perf_counter() - began) / len(cells)


def _swept(sweep: Specification) -> float:
    """Seconds from the end of a cell to that of the next on one worker, on average."""
    with tempfile.TemporaryDirectory() as folder:
        run_sweep(sweep, pathlib.Path(folder) / "out", Processes(1))
        events = read_journals(SweepFolder(pathlib.Path(folder) / "out"))
    ends = [float(event["at"]) for event in events if event["event"] == "done"]
    return (max(ends) - min(ends)) / (len(ends) - 1)  # the first one imports


def _command(*arguments: str | pathlib.Path) -> subprocess.Popen[bytes]:
    """Start the command line."""
    command = [sys.executable, "-m", "largeprompt", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def _until(holds: Callable[[], object]) -> None:
    while not holds():
        time.sleep(0.01)


if __name__ == "__main__":
    for row in measure():
        print(f"{row.quantity}: {row.median:.4g} {row.unit}")
