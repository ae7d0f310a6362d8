"""A directory of results that appears whole or not at all."""

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from largeprompt.errors import ResultError


def check_directory(directory: Path, names: Iterable[str], *, overwrite: bool) -> None:
    """Refuse a directory in which results would take the place of others.

    Raises:
        ResultError: It is a file, or holds a file of one of the names and `overwrite`
            is False.
    """
    if directory.exists() and not directory.is_dir():
        raise ResultError(f"{directory} is a file; results are a directory")
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

    They are written beside `directory`, which is then renamed to its place; into an
    existing directory they are moved one after the other, in the order of the mapping,
    and what else it holds is kept.

    Args:
        directory: Where to; created when missing.
        files: The name and the content of each file.
        overwrite: Whether files already there are replaced.

    Raises:
        ResultError: `directory` is a file, or holds one of the files already.
    """
    check_directory(directory, files, overwrite=overwrite)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=directory.parent, prefix=f".{directory.name}."
    ) as scratch:
        whole = Path(scratch) / directory.name
        whole.mkdir()
        for name, content in files.items():
            (whole / name).write_bytes(content)
        if directory.exists():
            for name in files:
                os.replace(whole / name, directory / name)
        else:
            whole.rename(directory)
