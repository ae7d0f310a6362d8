"""What was audited, how, with what and where: the manifest of a result."""

import datetime
import hashlib
import importlib.metadata
import os
import platform
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from largeprompt.audit.columns import COLUMNS
from largeprompt.audit.result import FORMAT
from largeprompt.audit.selection import Question

PACKAGES = ("largeprompt", "torch", "numpy", "scipy", "pyarrow")

Entry = Mapping[str, Any]


def build_manifest(
    *,
    model: Entry,
    texts: Sequence[Entry],
    question: Question,
    started: float,
    packages: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the manifest of an audit that ends now.

    Args:
        model: What was audited: name, source, sha256, architecture, shapes, dtype.
        texts: On what: name, sha256 and tokens of each text.
        question: What was measured. `seed` is null unless positions were drawn.
        started: `time.perf_counter()` when the audit began.
        packages: Distributions whose versions matter besides the usual ones.
    """
    return {
        "format": FORMAT,
        "model": dict(model),
        "text": all_texts(texts),
        "texts": [dict(text) for text in texts],
        "arguments": arguments(question),
        "versions": versions(packages),
        "seed": question.seed,
        "machine": (
            f"{platform.platform()}, {os.cpu_count()} cores, "
            f"{torch.get_num_threads()} threads"
        ),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": time.perf_counter() - started,
        "peak_rss_bytes": peak_rss_bytes(),
        "definitions": {column.name: column.definition for column in COLUMNS},
    }


def all_texts(texts: Sequence[Entry]) -> dict[str, Any]:
    """Return one entry for all texts: the text's own where there is one."""
    if len(texts) == 1:
        return dict(texts[0])
    hashes = "\n".join(str(text["sha256"]) for text in texts)
    return {
        "name": ", ".join(text["name"] for text in texts),
        "sha256": hashlib.sha256(hashes.encode()).hexdigest(),
        "tokens": sum(text["tokens"] for text in texts),
    }


def arguments(question: Question) -> dict[str, Any]:
    """Return what was measured, as the manifest has it."""
    return {
        "lengths": list(question.lengths),
        "queries": question.queries,
        "eps": question.eps,
        "layers": None if question.layers is None else sorted(set(question.layers)),
        "heads": None if question.heads is None else sorted(set(question.heads)),
        "seed": question.seed,
    }


def versions(packages: Sequence[str] = ()) -> dict[str, str]:
    """Return the versions of what computes an audit."""
    found = {name: importlib.metadata.version(name) for name in (*PACKAGES, *packages)}
    return {**found, "python": platform.python_version()}


def peak_rss_bytes() -> int:
    """Return the largest resident size this process has had so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
