"""A directory of results that appears whole or not at all."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from largeprompt.audit.files import check_writable, written_to
from largeprompt.errors import ResultError


def check_directory(directory: Path, names: Iterable[str], *, overwrite: bool) -> None:
    """Refuse a directory that results cannot go to, before any work is done.

    Raises:
        ResultError: It is a file, cannot be written to, or holds a file of one of the
            names and `overwrite` is False.
    """
    check_writable(directory)
    in_the_way = [name for name in names if (directory / name).exists()]
    if in_the_way and not overwrite:
        raise ResultError(
            f"{directory} already holds {' and '.join(in_the_way)}; "
            "choose another directory or ask to overwrite"
        )


def write_directory(
    directory: Path, files: Mapping[str, bytes], *, overwrite: bool = False
) -> None:
    """Write files into a directory, all of them or none.

    They are written beside `directory`, which is then renamed to its place; in an
    existing directory they are written to a hidden folder and moved one after the
    other, in the order of the mapping, and what else it holds is kept.

    Args:
        directory: Where to; created when missing.
        files: The name and the content of each file.
        overwrite: Whether files already there are replaced.

    Raises:
        ResultError: `directory` is a file, cannot be written to, or holds one of the
            files already.
    """
    check_directory(directory, files, overwrite=overwrite)
    with written_to(directory):
        # an existing directory may be the mount point of a file system of its own
        place = directory if directory.exists() else directory.parent
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place, prefix=".writing.") as scratch:
            whole = Path(scratch) / "whole"
            whole.mkdir()
            for name, content in files.items():
                (whole / name).write_bytes(content)
            if directory.exists():
                for name in files:
                    os.replace(whole / name, directory / name)
            else:
                whole.rename(directory)
