"""One recorded row, and the facts about the run that every row carries."""

import dataclasses
import datetime
import importlib.metadata
import json
import pathlib
import platform
import subprocess
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


@dataclasses.dataclass(frozen=True)
class Row:
    """A measured quantity: its median over repeats, with the least and the most."""

    case: str
    quantity: str
    unit: str
    median: float
    least: float
    most: float
    details: dict[str, Any] = dataclasses.field(default_factory=dict)


def processor() -> str:
    """The processor's name as the system gives it."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def facts(distributions: list[str]) -> dict[str, Any]:
    """Commit, machine and versions of this run."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "commit": commit or "unknown",
        "machine": f"{processor()}, {platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in distributions},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def write(case: str, rows: list[Row], distributions: list[str]) -> pathlib.Path:
    """Append the rows of one run to the case's file."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{case}.jsonl"
    shared = facts(distributions)
    lines = [json.dumps(dataclasses.asdict(row) | shared) for row in rows]
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))
    return path


def latest(case: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a case's last run, by quantity; none if it never ran."""
    path = RESULTS / f"{case}.jsonl"
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    last = max(row["date"] for row in rows)
    return {row["quantity"]: row for row in rows if row["date"] == last}
