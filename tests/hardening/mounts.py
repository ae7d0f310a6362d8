"""Small file systems of one's own: full, or read-only."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def mount(*arguments: object) -> None:
    """Mount, or skip the test, saying why."""
    command = ["mount", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a file system of one's own needs root: {done.stderr.strip()}")


@contextlib.contextmanager
def small_disk(folder: Path, kibibytes: int) -> Iterator[Path]:
    """Yield a folder whose file system holds so much."""
    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={kibibytes}k", "none", folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Write until nothing more fits."""
    ballast = (folder / ".ballast").open("wb", buffering=0)
    with ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(b"\0" * 4096)


def set_read_only(folder: Path) -> None:
    """Let nothing more be written, not even by root."""
    mount("-o", "remount,ro", folder)


def names(folder: Path) -> set[str]:
    """Everything below a folder, the ballast left out."""
    found = (path for path in folder.rglob("*") if path.name != ".ballast")
    return {os.path.relpath(path, folder) for path in found}
