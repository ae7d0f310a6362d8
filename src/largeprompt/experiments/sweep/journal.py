"""What every worker began and ended: a file each, a line an event."""

import json
import os
import socket
import time
from collections import Counter
from pathlib import Path

from largeprompt.experiments.sweep.folder import SweepFolder

STARTED, DONE, FAILED = "started", "done", "failed"


def note(folder: SweepFolder, runner: str, identity: str, event: str) -> None:
    """Add a line to the journal of this process.

    Raises:
        OSError: It cannot be written.
    """
    name = f"{runner}.{socket.gethostname()}-{os.getpid()}.jsonl"
    line = json.dumps({"cell": identity, "event": event, "at": time.time()}) + "\n"
    with (folder.path / "journals" / name).open("a", encoding="utf-8") as file:
        file.write(line)


def read_journals(folder: SweepFolder) -> list[dict[str, str]]:
    """Return all events; a line that a killed worker left unfinished is no event."""
    events = []
    for path in sorted((folder.path / "journals").glob("*.jsonl")):
        events += [event for line in _lines(path) if (event := _event(line))]
    return events


def starts(folder: SweepFolder) -> Counter[str]:
    """Return how often each cell was begun."""
    events = read_journals(folder)
    return Counter(e["cell"] for e in events if e["event"] == STARTED)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def _event(line: str) -> dict[str, str] | None:
    try:
        return json.loads(line)
    except ValueError:
        return None
