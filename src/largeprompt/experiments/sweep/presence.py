"""Signs of life of the runners of a sweep, on one machine or on many."""

import contextlib
import dataclasses
import json
import os
import shutil
import socket
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import final

from largeprompt.experiments.sweep.folder import SweepFolder, file_time, older_than

ALIVE = "alive.json"


@final
@dataclasses.dataclass(frozen=True)
class Lease:
    """How long a runner that says nothing keeps what it claimed.

    Attributes:
        beat: Seconds between signs of life.
        patience: Seconds without one after which a runner counts as dead; a process
            that is gone from this very machine counts at once.
    """

    beat: float = 5.0
    patience: float = 60.0

    def __post_init__(self) -> None:
        """Check that a sign can be missed."""
        if not 0 < 2 * self.beat <= self.patience:
            raise ValueError(
                "patience must be at least twice the beat, which must be above 0; "
                f"got {self.patience} and {self.beat}"
            )


@final
@dataclasses.dataclass(frozen=True)
class Presence:
    """A runner that is here.

    Attributes:
        folder: The directory of the sweep.
        runner: Its name, which no other has.
        since: When it came, by the clock of the file system, in nanoseconds.
        lease: How long others are trusted without a sign of life.
    """

    folder: SweepFolder
    runner: str
    since: int
    lease: Lease

    def alive(self, other: str) -> bool:
        """Whether another runner is still at work, or is this one."""
        return other == self.runner or is_alive(
            self.folder, other, self._now(), self.lease
        )

    def _now(self) -> int:
        return file_time(self.folder.runner(self.runner) / "clock")


@contextlib.contextmanager
def present(folder: SweepFolder, lease: Lease) -> Iterator[Presence]:
    """Give signs of life while inside; remove what dead runners left of theirs."""
    name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    home, arriving = folder.runner(name), folder.runner(f".{name}")
    arriving.mkdir(parents=True)
    said = {"machine": machine(), **process(os.getpid())}
    (arriving / ALIVE).write_text(json.dumps(said))
    arriving.rename(home)  # with a sign of life from the first moment on
    alive = home / ALIVE
    here = Presence(folder, name, alive.stat().st_mtime_ns, lease)
    for other in os.listdir(folder.path / "runners"):
        if not other.startswith(".") and not here.alive(other):
            shutil.rmtree(folder.runner(other), ignore_errors=True)
    leave = threading.Event()
    beating = threading.Thread(target=_beat, args=(alive, lease, leave), daemon=True)
    beating.start()
    try:
        yield here
    finally:
        leave.set()
        beating.join()
        shutil.rmtree(home, ignore_errors=True)


def is_alive(folder: SweepFolder, runner: str, now: int, lease: Lease) -> bool:
    """Whether a runner gave a sign of life of late, and its process is not known dead.

    Args:
        folder: The directory of the sweep.
        runner: The name of the runner.
        now: The time, in nanoseconds.
        lease: How long it is trusted.
    """
    alive = folder.runner(runner) / ALIVE
    if older_than(alive, now, lease.patience):
        return False
    try:
        said = json.loads(alive.read_bytes())
    except (OSError, ValueError):
        return True  # it has just come, or just left
    if said.get("machine") != machine():
        return True
    return said["started"] == process(said["pid"])["started"]


def machine() -> str:
    """Return a name that two processes share only if they see the same processes."""
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def process(pid: int) -> dict[str, int | str]:
    """Return a process's number and when it started; nothing for one that is gone."""
    started = ""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        started = "" if fields[0] in "ZX" else fields[19]  # zombies are gone, too
    except FileNotFoundError:
        if not Path("/proc/self/stat").exists():  # a system without /proc
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 0)
                started = "here"
    return {"pid": pid, "started": started}


def _beat(alive: Path, lease: Lease, leave: threading.Event) -> None:
    """Touch a file until it is time to leave; bring it back when it was taken away."""
    content = alive.read_text()
    while not leave.wait(lease.beat):
        with contextlib.suppress(OSError):  # a full disk is told by who writes results
            if not alive.exists():
                alive.parent.mkdir(parents=True, exist_ok=True)
                alive.write_text(content)
            os.utime(alive)
