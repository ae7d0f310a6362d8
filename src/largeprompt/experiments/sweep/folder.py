"""The directory of a sweep: where its files are, and whether it is the right one."""

import dataclasses
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, final

from largeprompt.errors import ResultError
from largeprompt.experiments.sweep.specification import Specification, specification

FORMAT = "largeprompt.sweep/1"
MANIFEST, TABLE = "sweep.json", "results.parquet"
PLACES = ("cells", "records", "failures", "claims", "runners", "journals")


@final
@dataclasses.dataclass(frozen=True)
class SweepFolder:
    """Paths in the directory of a sweep.

    | place         | holds                                                        |
    |---------------|--------------------------------------------------------------|
    | `sweep.json`  | the specification and the code version of the last run       |
    | `cells`       | the result of each finished cell: the same bytes everywhere  |
    | `records`     | who computed a cell, when, and how long it took              |
    | `failures`    | the traceback of each cell that failed last time             |
    | `claims`      | who is computing a cell                                      |
    | `runners`     | signs of life, and files not yet whole                       |
    | `journals`    | what each worker began and ended                             |
    | `checkpoints` | of cells that keep some                                      |

    Attributes:
        path: The directory.
    """

    path: Path

    def result(self, identity: str) -> Path:
        """Return where the result of a cell is; it is there when the cell is done."""
        return self.path / "cells" / f"{identity}.parquet"

    def record(self, identity: str) -> Path:
        """Return where it is said who computed a cell and how long it took."""
        return self.path / "records" / f"{identity}.json"

    def failure(self, identity: str) -> Path:
        """Return where the traceback of a cell is, if it failed when last run."""
        return self.path / "failures" / f"{identity}.json"

    def checkpoints(self, identity: str) -> Path:
        """Return the directory that a cell may keep checkpoints in."""
        return self.path / "checkpoints" / identity

    def runner(self, runner: str) -> Path:
        """Return the directory of a runner."""
        return self.path / "runners" / runner

    def holds(self, path: Path, since: int) -> bool:
        """Whether a file is there and was written at `since` (ns) or later."""
        try:
            return path.stat().st_mtime_ns >= since
        except FileNotFoundError:
            return False

    def names(self, place: str, suffix: str) -> set[str]:
        """Return the identities of the cells with a file in one of the places."""
        with os.scandir(self.path / place) as found:
            return {
                entry.name.removesuffix(suffix)
                for entry in found
                if entry.name.endswith(suffix)
            }

    @classmethod
    def prepare(cls, path: Path, sweep: Specification) -> Self:
        """Return the directory of a sweep, made or found, ready for a run.

        Raises:
            ResultError: It cannot be written, or holds something else.
        """
        folder = cls(path)
        content = {
            "format": FORMAT,
            "experiment": sweep.experiment,
            "code": sweep.code,
            "specification": dict(sweep.content),
        }
        try:
            folder._check(sweep.experiment)
            path.mkdir(parents=True, exist_ok=True)
            manifest = path / MANIFEST
            if not manifest.exists() or json.loads(manifest.read_bytes()) != content:
                text = json.dumps(content, indent=2, allow_nan=False) + "\n"
                write_durably(manifest, text.encode(), path)
            for place in PLACES:
                (path / place).mkdir(exist_ok=True)
        except OSError as error:
            raise ResultError(f"{path} cannot be written: {error}") from error
        return folder

    def _check(self, experiment: str) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise ResultError(f"{self.path} is a file; a sweep is a directory")
        if not (self.path / MANIFEST).exists():
            others = [p.name for p in self.path.iterdir() if not p.name.startswith(".")]
            if others:
                raise ResultError(
                    f"{self.path} holds {others[0]} but no sweep; choose another "
                    "directory"
                )
            return
        found = read_manifest(self.path)["experiment"]
        if found != experiment:
            raise ResultError(
                f"{self.path} holds a sweep of {found!r}, not of {experiment!r}; "
                "choose another directory"
            )


def read_manifest(path: Path) -> Mapping[str, Any]:
    """Return what `sweep.json` says.

    Raises:
        ResultError: There is none, or it is of another format.
    """
    try:
        found = json.loads((path / MANIFEST).read_bytes())
    except (OSError, ValueError) as error:
        raise ResultError(f"no sweep there: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ResultError(f"{path / MANIFEST} is not of the format {FORMAT}")
    return found


def saved_sweep(path: Path) -> tuple[SweepFolder, Specification]:
    """Return the directory of a sweep and the cells that its last run was asked for.

    Raises:
        ResultError: There is no sweep, or its experiment no longer reads its options.
    """
    found = read_manifest(path)
    try:
        sweep = specification(found["specification"], found["code"])
    except ValueError as error:
        raise ResultError(
            f"the sweep in {path} was of other code than this: {error}"
        ) from error
    return SweepFolder(path), sweep


def write_durably(
    path: Path, content: bytes, scratch: Path, *, synced: bool = True
) -> None:
    """Write a file that is there whole or not at all.

    Args:
        path: Where to; what is there is replaced in one step.
        content: The content.
        scratch: A directory of the same file system for the file until it is whole.
        synced: Whether that holds after a loss of power, too, which takes longer.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=scratch, prefix=".part.")
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            if synced:
                os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def file_time(path: Path) -> int:
    """Return the time of the file system's own clock, in nanoseconds, by touching."""
    path.touch()
    return path.stat().st_mtime_ns


def older_than(path: Path, now: int, seconds: float) -> bool:
    """Whether a file has not been touched for so long, or is not there."""
    try:
        return now - path.stat().st_mtime_ns > seconds * 1e9
    except FileNotFoundError:
        return True
