"""An experiment whose cells can be watched and stopped: what sweeps are tested with."""

import dataclasses
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, final

from typing_extensions import override

from largeprompt.experiments.sweep import Drawing, Experiment, Key, Row, work
from largeprompt.experiments.sweep.folder import write_durably

NAME = "tests.experiments.sweep_probe:ProbeCell"
GATE, LIMIT, BROKEN = "PROBE_GATE", "PROBE_LIMIT", "PROBE_BROKEN"


@final
@dataclasses.dataclass(frozen=True)
class ProbeCell(Experiment):
    """A cell that draws two numbers.

    Where the variable `PROBE_GATE` names a directory, it first leaves its process
    number there and waits for a file `go`; where `PROBE_LIMIT` holds a number, no file
    may grow beyond so many bytes; cells numbered in `PROBE_BROKEN` raise.
    """

    drawing: ClassVar[Drawing] = Drawing("number", "draw", "end")

    number: int
    end: str = "well"
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.end not in ("well", "deadly", "late"):
            raise ValueError(f"end must be well, deadly or late; got {self.end!r}")

    @override
    def rows(self, key: Key, keep: Path) -> list[Row]:
        if gate := os.environ.get(GATE):
            (Path(gate) / f"{self.number}.{os.getpid()}").touch()
            wait_for(lambda: (Path(gate) / "go").exists())
        if limit := os.environ.get(LIMIT):
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), hard))
        if str(self.number) in os.environ.get(BROKEN, "").split(","):
            raise ArithmeticError(f"cell {self.number} is broken")
        if self.end == "deadly":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.end == "late":
            die_when_saved(keep.name)
        return [
            {"draw": key.number(step) / 2**63, "step": step, "weight": self.weight}
            for step in range(2)
        ]


def die_when_saved(identity: str) -> None:
    """Kill this process at the moment when the result of the cell is there."""

    def last(path: Path, content: bytes, scratch: Path) -> None:
        write_durably(path, content, scratch)
        if path.name == f"{identity}.parquet":
            os.kill(os.getpid(), signal.SIGKILL)

    work.write_durably = last


def wait_for(holds: Callable[[], object], pause: float = 0.01) -> None:
    """Wait until something holds; a minute is too long."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(pause)
