"""Writing that fails in words the user can act on."""

import contextlib
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
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise ResultError(f"{place} is a file; an audit is a directory")
    with written_to(directory), tempfile.TemporaryFile(dir=place):
        pass
