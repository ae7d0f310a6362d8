"""What an audit found: one table of heads, one manifest, and their files."""

import dataclasses
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Self, final

import pyarrow as pa
import pyarrow.parquet as pq

from largeprompt.audit.columns import SCHEMA
from largeprompt.audit.overview import overview
from largeprompt.errors import ResultError

FORMAT = "largeprompt.audit/1"
HEADS = "heads.parquet"
MANIFEST = "manifest.json"


@final
@dataclasses.dataclass(frozen=True, eq=False)
class AuditResult:
    """The audit of one model on one text.

    `heads` has one row per layer, head and length, with the columns of
    `audit.columns`; `manifest` says what was audited, with which arguments, versions
    and machine, and what each column means.
    """

    heads: pa.Table
    manifest: dict[str, Any]

    def __post_init__(self) -> None:
        if self.manifest.get("format") != FORMAT:
            raise ValueError(
                f"manifest['format'] must be {FORMAT!r}; "
                f"got {self.manifest.get('format')!r}"
            )
        if not self.heads.schema.equals(SCHEMA):
            raise ValueError(
                f"heads must have the columns {SCHEMA.names} and their types; "
                f"got {self.heads.schema.names}"
            )
        if self.heads.num_rows == 0:
            raise ValueError("an audit needs at least one head; got no row")

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the whole model at the longest length."""
        return overview(self.heads, self.manifest["arguments"]["eps"])

    def save(self, directory: Path | str, *, overwrite: bool = False) -> None:
        """Write `heads.parquet` and `manifest.json`, whole or not at all.

        Both are written to a temporary directory beside `directory`, which is then
        renamed; in an existing directory the two files are moved in one after the
        other, the manifest last. It holds the hash of the table, so that an
        interruption in between is noticed by `load`.

        Args:
            directory: Where to; created when missing, other files in it are kept.
            overwrite: Whether an audit already there is replaced.

        Raises:
            ResultError: `directory` is a file, or holds an audit already.
        """
        directory = Path(directory)
        if directory.exists() and not directory.is_dir():
            raise ResultError(f"{directory} is a file; an audit is a directory")
        in_the_way = [name for name in (HEADS, MANIFEST) if (directory / name).exists()]
        if in_the_way and not overwrite:
            raise ResultError(
                f"{directory} already holds {' and '.join(in_the_way)}; "
                "choose another directory or ask to overwrite"
            )
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=directory.parent, prefix=f".{directory.name}."
        ) as scratch:
            whole = Path(scratch) / directory.name
            whole.mkdir()
            self._write(whole)
            if directory.exists():
                os.replace(whole / HEADS, directory / HEADS)
                os.replace(whole / MANIFEST, directory / MANIFEST)
            else:
                whole.rename(directory)

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read what `save` wrote.

        Raises:
            ResultError: A file is missing, truncated, of another format, or the two
                do not belong together.
        """
        directory = Path(directory)
        manifest = _read_manifest(directory / MANIFEST)
        table = _read(directory / HEADS)
        if hashlib.sha256(table).hexdigest() != manifest.pop("heads_sha256", None):
            raise ResultError(
                f"{directory / HEADS} is truncated, or not the one that {MANIFEST} "
                "describes"
            )
        try:
            return cls(pq.read_table(pa.BufferReader(table)), manifest)
        except (pa.ArrowInvalid, ValueError) as error:
            raise ResultError(f"{directory} is no audit: {error}") from error

    def _write(self, directory: Path) -> None:
        pq.write_table(self.heads, directory / HEADS)
        digest = hashlib.sha256((directory / HEADS).read_bytes()).hexdigest()
        text = json.dumps({**self.manifest, "heads_sha256": digest}, indent=2)
        (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ResultError(f"no audit there: cannot read {path}") from error


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(_read(path))
    except ValueError as error:
        raise ResultError(f"{path} is truncated or no JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ResultError(f"{path} is not of the format {FORMAT}")
    return manifest
