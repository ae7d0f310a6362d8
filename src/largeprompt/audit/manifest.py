"""What was audited, how, with what and where: the manifest of a result."""

import datetime
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

PACKAGES = ("largeprompt", "torch", "numpy", "scipy", "pyarrow")


def build_manifest(
    *,
    model: Mapping[str, Any],
    text: Mapping[str, Any],
    lengths: Sequence[int],
    queries: int,
    eps: float,
    started: float,
    packages: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the manifest of an audit that ends now.

    An audit draws nothing, so `seed` is null; it is there for readers that expect it.

    Args:
        model: What was audited: name, source, sha256, architecture, shapes, dtype.
        text: On what: name, sha256, tokens.
        lengths: Prompt lengths, in tokens.
        queries: Query positions asked for at each length.
        eps: The relative error that the verdicts ask for.
        started: `time.perf_counter()` when the audit began.
        packages: Distributions whose versions matter besides the usual ones.
    """
    versions = {
        name: importlib.metadata.version(name) for name in (*PACKAGES, *packages)
    }
    return {
        "format": FORMAT,
        "model": dict(model),
        "text": dict(text),
        "arguments": {
            "lengths": list(lengths),
            "queries": queries,
            "eps": eps,
            "seed": None,
        },
        "versions": {**versions, "python": platform.python_version()},
        "seed": None,
        "machine": (
            f"{platform.platform()}, {os.cpu_count()} cores, "
            f"{torch.get_num_threads()} threads"
        ),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": time.perf_counter() - started,
        "peak_rss_bytes": peak_rss_bytes(),
        "definitions": {column.name: column.definition for column in COLUMNS},
    }


def peak_rss_bytes() -> int:
    """Return the largest resident size this process has had so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
