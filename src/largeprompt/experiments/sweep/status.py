"""Where a sweep stands, from its directory alone."""

import dataclasses
import json
import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from largeprompt.experiments.sweep.folder import SweepFolder, saved_sweep
from largeprompt.experiments.sweep.journal import starts
from largeprompt.experiments.sweep.presence import Lease, is_alive
from largeprompt.experiments.sweep.run import State
from largeprompt.experiments.sweep.specification import Specification


@final
@dataclasses.dataclass(frozen=True)
class Status:
    """The states of the cells that the last run was asked for.

    Attributes:
        sweep: The sweep.
        states: Of each cell.
        failures: The last line of the traceback of each cell that failed.
        runners: Those alive.
        starts: How often a cell was begun, over all cells.
        reruns: Beginnings of cells that had been begun before.
        other_code: Cells not done that another version of the code has done.
        seconds: The median time of a cell; None when none is done.
    """

    sweep: Specification
    states: Mapping[str, State]
    failures: Mapping[str, str]
    runners: tuple[str, ...]
    starts: int
    reruns: int
    other_code: int
    seconds: float | None

    def count(self, state: State) -> int:
        """Return how many cells are in a state."""
        return sum(each is state for each in self.states.values())


def read_status(path: Path) -> Status:
    """Return where the sweep in a directory stands; nothing is written there.

    Raises:
        ResultError: There is no sweep.
    """
    folder, sweep = saved_sweep(path)
    done = folder.names("cells", ".parquet")
    failed = folder.names("failures", ".json")
    runners = tuple(_alive(folder))
    running = _running(folder, runners)
    states = {
        identity: State.DONE
        if identity in done
        else State.RUNNING
        if identity in running
        else State.FAILED
        if identity in failed
        else State.WAITING
        for identity in sweep.cells
    }
    ours = {identity.partition(".")[0] for identity in done & set(states)}
    others = {identity.partition(".")[0] for identity in done - set(states)} - ours
    begun = starts(folder)
    counts = [begun[identity] for identity in states]
    return Status(
        sweep=sweep,
        states=states,
        failures={
            identity: _last_line(folder.failure(identity))
            for identity, state in states.items()
            if state is State.FAILED
        },
        runners=runners,
        starts=sum(counts),
        reruns=sum(count - 1 for count in counts if count),
        other_code=sum(identity.partition(".")[0] in others for identity in states),
        seconds=_seconds(folder, [i for i, s in states.items() if s is State.DONE]),
    )


def _alive(folder: SweepFolder) -> list[str]:
    now, lease = time.time_ns(), Lease()
    names = sorted(os.listdir(folder.path / "runners"))
    return [
        name
        for name in names
        if not name.startswith(".") and is_alive(folder, name, now, lease)
    ]


def _running(folder: SweepFolder, runners: tuple[str, ...]) -> set[str]:
    """Return the cells that a runner alive has claimed."""
    running = set()
    with os.scandir(folder.path / "claims") as found:
        for entry in found:
            try:
                owner = os.readlink(entry.path)
            except FileNotFoundError:
                continue  # released since
            if owner in runners:
                running.add(entry.name.rpartition(".")[0])
    return running


def _last_line(path: Path) -> str:
    lines = str(_noted(path, "traceback") or "").strip().splitlines()
    return lines[-1] if lines else ""


def _seconds(folder: SweepFolder, done: list[str]) -> float | None:
    """Return the median time over at most a hundred of the cells."""
    some = done[:: max(1, len(done) // 100)]
    times = []
    for identity in some:
        seconds = _noted(folder.record(identity), "seconds")
        if isinstance(seconds, int | float):
            times.append(seconds)
    return statistics.median(times) if times else None


def _noted(path: Path, name: str) -> Any:
    """Return what a note says under a name; None if it is not there, or damaged."""
    try:
        return json.loads(path.read_bytes())[name]
    except (OSError, ValueError, LookupError, TypeError):
        return None  # a worker died just then, or a disk was full
