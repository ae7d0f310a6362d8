"""The directory that `largeprompt reproduce` writes."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from largeprompt.audit.directory import check_directory, write_directory
from largeprompt.experiments.reproduction import PARTS
from largeprompt.experiments.verdicts import Finding
from largeprompt.report.paper_figures import paper_figure
from largeprompt.report.paper_page import paper_page

PAGE, VERDICTS, MANIFEST = "reproduction.html", "verdicts.json", "manifest.json"
SUFFIXES = (".svg", ".png", ".pdf")


def kept_parts(directory: Path) -> Path:
    """Return where the parts of an unfinished reproduction are kept: beside it."""
    return directory.parent / f".{directory.name}.parts"


def check_free(directory: Path, *, overwrite: bool) -> None:
    """Refuse a directory that holds results, before any work is done.

    Raises:
        ResultError: It is a file, cannot be written to, or results are in the way.
    """
    figures = [f"{name}{suffix}" for name in PARTS for suffix in SUFFIXES]
    names = [*figures, *(f"{name}.parquet" for name in PARTS), VERDICTS, MANIFEST, PAGE]
    check_directory(directory, names, overwrite=overwrite)


def write(
    findings: Sequence[Finding],
    manifest: dict[str, Any],
    directory: Path,
    *,
    overwrite: bool,
) -> None:
    """Write all files of a reproduction or none, then forget the kept parts."""
    kept = kept_parts(directory)
    figures = {
        f"{part.name}{suffix}": paper_figure(part, suffix)
        for part in findings
        for suffix in SUFFIXES
    }
    data = {
        f"{part.name}.parquet": (kept / f"{part.name}.parquet").read_bytes()
        for part in findings
    }
    pictures = {part.name: paper_figure(part, ".svg", note=False) for part in findings}
    claims = [claim.record() for part in findings for claim in part.claims]
    files = {
        **figures,
        **data,
        MANIFEST: _json(manifest),
        PAGE: paper_page(findings, pictures, manifest).encode(),
        VERDICTS: _json(claims),
    }
    write_directory(directory, files, overwrite=overwrite)
    shutil.rmtree(kept)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
