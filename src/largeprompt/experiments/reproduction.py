"""The paper, statement by statement: what is computed, kept and handed on."""

import datetime
import importlib.metadata
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from largeprompt.audit.files import write_whole, written_to
from largeprompt.audit.manifest import peak_rss_bytes
from largeprompt.experiments.paper_concentration import concentration
from largeprompt.experiments.paper_endpoint import flow_endpoint
from largeprompt.experiments.paper_limit import limit_identity
from largeprompt.experiments.paper_stability import trajectory_stability
from largeprompt.experiments.paper_training import SEED, training
from largeprompt.experiments.verdicts import Claim, Finding, Verdict

FORMAT = "largeprompt.reproduction/1"
PACKAGES = ("largeprompt", "torch", "numpy", "scipy", "pyarrow")
PAPER = "Boursier and Boyer (2026), arXiv:2512.11784"

PARTS: Mapping[str, Callable[..., Finding]] = MappingProxyType(
    {
        "limit": limit_identity,
        "concentration": concentration,
        "stability": trajectory_stability,
        "endpoint": flow_endpoint,
        "training": training,
    }
)


def reproduce(
    kept: Path,
    *,
    fast: bool,
    progress: Callable[[str, int, int], None] = lambda part, done, total: None,
) -> Iterator[Finding]:
    """Yield the parts of the reproduction, each kept in a file as soon as it is done.

    Parts that an interrupted run of the same kind and the same versions kept there are
    read, not computed again.

    Args:
        kept: The directory of those files; created when missing.
        fast: Fewer draws, and one covariance in training.
        progress: Called with a part's name, how many of its steps are done, and their
            total.

    Raises:
        ResultError: The directory cannot be written to.
    """
    with written_to(kept):
        kept.mkdir(parents=True, exist_ok=True)
    run = json.dumps({"format": FORMAT, "fast": fast, "versions": versions()})
    for name, part in PARTS.items():
        progress(name, 0, 1)
        path = kept / f"{name}.parquet"
        finding = read_finding(path, run)
        if finding is None:

            def report(done: int, total: int, name: str = name) -> None:
                progress(name, done, total)

            finding = part(fast=fast, progress=report)
            _write_finding(finding, path, run)
        progress(name, 1, 1)
        yield finding


def read_finding(path: Path, run: str) -> Finding | None:
    """Return the finding that a run has kept, None if there is none of this run.

    A file that is damaged is none.
    """
    if not path.exists():
        return None
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid):
        return None
    about = json.loads((table.schema.metadata or {}).get(b"largeprompt", b"{}"))
    if about.get("run") != run:
        return None
    claims = (Claim(**c | {"verdict": Verdict(c["verdict"])}) for c in about["claims"])
    return Finding(
        name=about["name"],
        title=about["title"],
        note=about["note"],
        table=table.replace_schema_metadata(None),
        claims=tuple(claims),
    )


def _write_finding(finding: Finding, path: Path, run: str) -> None:
    about = {
        "run": run,
        "name": finding.name,
        "title": finding.title,
        "note": finding.note,
        "claims": [claim.record() for claim in finding.claims],
    }
    metadata = {"largeprompt": json.dumps(about)}
    table: pa.Table = finding.table.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    write_whole(path, sink.getvalue().to_pybytes())


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return packages | {"python": platform.python_version()}


def manifest(*, fast: bool, started: float) -> dict[str, Any]:
    """Return what a reproduction that ends now was made with.

    Args:
        fast: Whether it is the fast one.
        started: `time.perf_counter()` when it began.
    """
    return {
        "format": FORMAT,
        "paper": PAPER,
        "arguments": {"fast": fast},
        "seed": SEED,
        "versions": versions(),
        "machine": f"{platform.platform()}, {os.cpu_count()} cores",
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": time.perf_counter() - started,
        "peak_rss_bytes": peak_rss_bytes(),
    }
