"""What an audit found: one table of heads, one manifest, and their files."""

import dataclasses
import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any, Self, final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from largeprompt.audit.columns import SCHEMA
from largeprompt.audit.directory import write_directory
from largeprompt.audit.notebook import as_html
from largeprompt.audit.overview import overview
from largeprompt.audit.profiles import PROFILE_SCHEMA
from largeprompt.errors import ResultError

FORMAT = "largeprompt.audit/2"
HEADS = "heads.parquet"
PROFILES = "profiles.parquet"
MANIFEST = "manifest.json"


@final
@dataclasses.dataclass(frozen=True, eq=False)
class AuditResult:
    """The audit of one model on one or several texts.

    `heads` has one row per text, layer, head and length, with the columns of
    `audit.columns`; `manifest` says what was audited, with which arguments, versions
    and machine, and what each column means. `profiles` holds the curves of the heads
    (`audit.profiles`), None where none were measured.
    """

    heads: pa.Table
    manifest: dict[str, Any]
    profiles: pa.Table | None = None

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
        if self.profiles is not None and not self.profiles.schema.equals(
            PROFILE_SCHEMA
        ):
            raise ValueError(
                f"profiles must have the columns {PROFILE_SCHEMA.names} and their "
                f"types; got {self.profiles.schema.names}"
            )

    @property
    def summary(self) -> dict[str, Any]:
        """The numbers of the whole model at the longest length (`audit.overview`)."""
        return overview(
            self.heads,
            self.manifest["arguments"]["eps"],
            self.manifest["model"].get("context"),
        )

    @property
    def details(self) -> Any:
        """The table of heads as a pandas DataFrame; as it is where pandas is not."""
        if importlib.util.find_spec("pandas") is None:
            return self.heads
        return self.heads.to_pandas()

    @property
    def texts(self) -> list[str]:
        """The names of the texts that were read."""
        return [text["name"] for text in self.manifest["texts"]]

    def only(self, text: str) -> Self:
        """Return the audit on one of the texts.

        Raises:
            ValueError: No text has that name.
        """
        entries = [e for e in self.manifest["texts"] if e["name"] == text]
        if not entries:
            raise ValueError(f"text must be one of {self.texts}; got {text!r}")
        manifest = {**self.manifest, "text": entries[0], "texts": entries}
        mine = pc.field("text") == text
        profiles = None if self.profiles is None else self.profiles.filter(mine)
        return type(self)(self.heads.filter(mine), manifest, profiles)

    def _repr_html_(self) -> str:
        return as_html(self.heads, self.manifest, self.summary)

    def save(self, directory: Path | str, *, overwrite: bool = False) -> None:
        """Write `heads.parquet` and `manifest.json`, whole or not at all.

        So is `profiles.parquet` where there are profiles; see
        `audit.directory.write_directory`.

        Args:
            directory: Where to; created when missing, other files in it are kept.
            overwrite: Whether an audit already there is replaced.

        Raises:
            ResultError: `directory` is a file, holds an audit already, or cannot be
                written to.
        """
        directory = Path(directory)
        write_directory(directory, self.files(), overwrite=overwrite)
        if self.profiles is None:
            (directory / PROFILES).unlink(missing_ok=True)  # of the audit replaced

    def files(self) -> dict[str, bytes]:
        """Return the files of the audit by name, the manifest last.

        It holds the hashes of the tables, so that files that do not belong together
        are noticed by `load`.
        """
        contents: dict[str, bytes] = {}
        manifest = dict(self.manifest)
        for name, table in ((HEADS, self.heads), (PROFILES, self.profiles)):
            if table is not None:
                sink = pa.BufferOutputStream()
                pq.write_table(table, sink)
                contents[name] = sink.getvalue().to_pybytes()
                digest = hashlib.sha256(contents[name]).hexdigest()
                manifest[f"{name.removesuffix('.parquet')}_sha256"] = digest
        text = json.dumps(manifest, indent=2) + "\n"
        return {**contents, MANIFEST: text.encode()}

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read what `save` wrote.

        Raises:
            ResultError: A file is missing, truncated, of another format, or the two
                do not belong together.
        """
        directory = Path(directory)
        manifest = _read_manifest(directory / MANIFEST)
        heads = _read_whole(directory / HEADS, manifest.pop("heads_sha256", None))
        digest = manifest.pop("profiles_sha256", None)
        curves = digest and _read_whole(directory / PROFILES, digest)
        try:
            profiles = _completed(curves, PROFILE_SCHEMA) if curves else None
            return cls(_completed(heads, SCHEMA), manifest, profiles)
        except (pa.ArrowInvalid, ValueError) as error:
            raise ResultError(f"{directory} is no audit: {error}") from error


def load_audit(directory: Path | str) -> AuditResult:
    """Read an audit that was saved.

    Raises:
        ResultError: A file is missing, truncated, of another format, or the two do not
            belong together.
    """
    return AuditResult.load(directory)


def _completed(content: bytes, schema: pa.Schema) -> pa.Table:
    """Return a table; what an earlier version did not measure is null."""
    table = pq.read_table(pa.BufferReader(content))
    if not set(table.schema.names) <= set(schema.names):
        return table  # refused with its columns named
    for field in schema:
        if field.nullable and field.name not in table.schema.names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    if set(table.schema.names) != set(schema.names):
        return table
    return table.select(schema.names)


def _read_whole(path: Path, digest: str | None) -> bytes:
    """Return what a file holds if it is what the manifest says."""
    content = _read(path)
    if hashlib.sha256(content).hexdigest() != digest:
        raise ResultError(
            f"{path} is truncated, or not the one that {MANIFEST} describes"
        )
    return content


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
