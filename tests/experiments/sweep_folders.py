"""What tests of sweeps share: specifications of probes, runs, and looks at folders."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from largeprompt.experiments.sweep import (
    Demand,
    Processes,
    Specification,
    State,
    run_sweep,
    specification,
)
from largeprompt.experiments.sweep.folder import SweepFolder
from largeprompt.experiments.sweep.journal import starts
from tests.experiments.sweep_probe import NAME, wait_for

ROOT = Path(__file__).parents[2]


def probes(count: int, **options: Any) -> Specification:
    """A sweep of so many probes."""
    grid = {"number": list(range(count))}
    return specification({"experiment": NAME, "options": options, "grid": grid})


def finish(
    sweep: Specification, path: Path, jobs: int = 2, demand: Demand | None = None
) -> Mapping[str, State]:
    """Run the sweep on local processes."""
    return run_sweep(sweep, path, Processes(jobs), demand)


def spec_file(path: Path, count: int) -> Path:
    """Write the specification of so many probes."""
    numbers = f"{{from = 0, to = {count - 1}}}"
    path.write_text(f'experiment = "{NAME}"\n[grid]\nnumber = {numbers}\n')
    return path


@contextlib.contextmanager
def started(*arguments: str | Path, gate: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the command line whose probes wait at a gate; kill it in the end."""
    gate.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "largeprompt", *map(str, arguments)]
    environment = {**os.environ, "PROBE_GATE": str(gate), "COLUMNS": "200"}
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def at_gate(gate: Path, count: int) -> list[int]:
    """Wait until so many probes have begun; return their process numbers."""
    wait_for(lambda: len(list(gate.glob("*.*"))) >= count)
    return [int(path.suffix[1:]) for path in gate.glob("*.*")]


def contents(path: Path) -> dict[str, bytes]:
    """The result files of a sweep, by name."""
    return {file.name: file.read_bytes() for file in (path / "cells").iterdir()}


def begun(path: Path) -> list[int]:
    """How often each cell was begun, the least first."""
    return sorted(starts(SweepFolder(path)).values())


def leftovers(path: Path) -> list[Path]:
    """Claims, signs of life and unfinished files that nobody should have left."""
    places = [path / "claims", path / "runners"]
    left = [file for place in places for file in place.iterdir()]
    return [*left, *path.rglob(".part.*")]
