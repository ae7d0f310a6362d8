"""What `largeprompt sweep` shows while it runs, and in the end."""

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Self, final

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from largeprompt.errors import ResultError
from largeprompt.experiments.sweep import (
    Cell,
    Shard,
    Specification,
    State,
    read_status,
)
from largeprompt.experiments.sweep.folder import MANIFEST, SweepFolder
from largeprompt.experiments.sweep.gather import write_table

SHOWN = 6  # cells at work that are named


@final
class LiveStates:
    """A table of the states of all cells, on standard error; failures above it."""

    def __init__(self, sweep: Specification, shard: Shard) -> None:
        """Set everything waiting."""
        self._sweep = sweep
        self._cells = shard.cells(sweep)
        self._states = dict.fromkeys(self._cells, State.WAITING)
        self._counts = Counter(self._states.values())
        self._running: dict[str, str] = {}
        self._began = time.monotonic()
        self._live = Live(
            console=Console(stderr=True),
            get_renderable=self._table,
            refresh_per_second=4,
        )

    @property
    def failed(self) -> int:
        """How many cells failed."""
        return self._counts[State.FAILED]

    def __enter__(self) -> Self:
        """Show the table."""
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the table as it is."""
        self._live.stop()

    def watch(self, cell: Cell, state: State, text: str) -> None:
        """Take note of a cell's new state; show the traceback of a failure at once."""
        identity, label = cell.identity, self._sweep.label(cell)
        self._counts[self._states[identity]] -= 1
        self._counts[state] += 1
        self._states[identity] = state
        self._running.pop(identity, None)
        if state is State.RUNNING:
            self._running[identity] = label
        if state is State.FAILED:
            self._live.console.print(Text(f"failed: {label}", style="bold red"))
            self._live.console.print(Text(text.rstrip()))

    def _table(self) -> Table:
        table = Table(title=f"{len(self._states):,} cells of {self._sweep.experiment}")
        for state in State:
            table.add_column(state.value, justify="right")
        table.add_row(*(f"{self._counts[state]:,}" for state in State))
        at_work = [f"at work: {label}" for label in list(self._running.values())]
        table.caption = "\n".join([self._time(), *at_work[:SHOWN]])
        return table

    def _time(self) -> str:
        """Return the time taken, and the time left if the rest is like what is done."""
        passed = time.monotonic() - self._began
        ended = self._counts[State.DONE] + self._counts[State.FAILED]
        left = self._counts[State.WAITING] + self._counts[State.RUNNING]
        if not (ended and left):
            return f"{passed:.0f} s"
        return f"{passed:.0f} s, about {passed * left / ended:.0f} s left"


def listed(sweep: Specification, out: Path, shard: Shard) -> str:
    """Return a line for each cell: whether it is done, its identity, its options."""
    done: set[str] = set()
    if (out / MANIFEST).exists():
        done = SweepFolder(out).names("cells", ".parquet")
    return "\n".join(
        f"{'done' if identity in done else 'waiting':<8} {identity}  "
        f"{sweep.label(cell)}"
        for identity, cell in shard.cells(sweep).items()
    )


def in_words(sweep: Specification, out: Path, states: Mapping[str, State]) -> str:
    """Write the table of what is done; return the counts and where it is."""
    counts = Counter(states.values())
    told = [f"{count:,} {state.value}" for state in State if (count := counts[state])]
    lines = [f"{len(states):,} cells: {', '.join(told)}"]
    try:
        table = write_table(SweepFolder(out), sweep)
    except ResultError:
        return lines[0]  # nothing is done
    lines.append(f"{table.num_rows:,} rows in {out / 'results.parquet'}")
    others = read_status(out).other_code
    if others:
        lines.append(f"{others:,} cells wait that other code has done: see status")
    return "\n".join(lines)
