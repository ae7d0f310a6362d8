"""The directory that `largeprompt compress-eval` writes."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from largeprompt.hf.evaluation_result import CompressionResult

FILES = (
    "errors.parquet",
    "summary.json",
    "passkeys.json",
    "manifest.json",
    "report.html",
)


def cells_beside(directory: Path) -> Path:
    """Return where the cells of an unfinished evaluation are kept: beside it."""
    return directory.parent / f".{directory.name}.cells"


def check_free(directory: Path, *, overwrite: bool) -> None:
    """Refuse a directory that holds results, before any work is done.

    Raises:
        ResultError: It is a file, cannot be written to, or results are in the way.
    """
    from largeprompt.audit.directory import check_directory

    check_directory(directory, FILES, overwrite=overwrite)


def write(result: "CompressionResult", directory: Path, *, overwrite: bool) -> None:
    """Write all files of an evaluation or none, then forget the kept cells."""
    from largeprompt.audit.directory import write_directory
    from largeprompt.report.compression_page import compression_page

    page = compression_page(result)
    files = {**result.files(), "report.html": page.encode()}
    write_directory(directory, files, overwrite=overwrite)
    shutil.rmtree(cells_beside(directory), ignore_errors=True)
