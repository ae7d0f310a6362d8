"""Writing that fails in words the user can act on."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from largeprompt.errors import ResultError


@contextlib.contextmanager
def written_to(directory: Path) -> Iterator[None]:
    """Turn a refusal of the file system into one that names the directory.

    Raises:
        ResultError: Something inside cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise ResultError(
            f"cannot write to {directory}: {error.strerror or error}"
        ) from error


def check_writable(directory: Path) -> None:
    """Refuse a directory in which no file can be made, before any work is done.

    Nothing is left behind; a directory that is not there yet is not made.

    Raises:
        ResultError: It cannot be written to, or something on its path is a file.
    """
    place = directory
    with written_to(directory):
        while not place.exists() and place != place.parent:
            place = place.parent
        if not place.is_dir():
            raise ResultError(f"{place} is a file; results are a directory")
        with tempfile.TemporaryFile(dir=place):
            pass


def write_whole(path: Path, content: bytes) -> None:
    """Write a file beside its place, then move it there; replaces one already there.

    Raises:
        ResultError: It cannot be written.
    """
    with written_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing.") as near:
            whole = Path(near) / path.name
            whole.write_bytes(content)
            os.replace(whole, path)
