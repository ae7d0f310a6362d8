"""Results as files that know one another: the manifest holds the others' hashes."""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from largeprompt.errors import ResultError

MANIFEST = "manifest.json"


def as_parquet(table: pa.Table) -> bytes:
    """Return a table as the content of a file."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def as_json(value: Any) -> bytes:
    """Return a value as the content of a file; NaN is refused."""
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()


def with_manifest(
    contents: Mapping[str, bytes], manifest: Mapping[str, Any]
) -> dict[str, bytes]:
    """Return the files by name, the manifest last with the hashes of the others."""
    hashes = {k: hashlib.sha256(v).hexdigest() for k, v in contents.items()}
    return {**contents, MANIFEST: as_json({**manifest, "sha256": hashes})}


def read_files(
    directory: Path | str, names: Sequence[str], form: str
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return the files of a result and its manifest, without the hashes.

    Args:
        directory: Where they are.
        names: The files besides the manifest.
        form: The format that the manifest must name.

    Raises:
        ResultError: A file is missing, truncated, of another format, or the files do
            not belong together.
    """
    directory = Path(directory)
    try:
        contents = {name: (directory / name).read_bytes() for name in names}
        manifest = json.loads((directory / MANIFEST).read_bytes())
    except OSError as error:
        raise ResultError(f"no {form} there: {error}") from error
    except ValueError as error:
        raise ResultError(f"{directory / MANIFEST} is no JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != form:
        raise ResultError(f"{directory / MANIFEST} is not of the format {form}")
    hashes = manifest.pop("sha256", {})
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != hashes.get(name):
            raise ResultError(
                f"{directory / name} is truncated, or not the one that {MANIFEST} "
                "describes"
            )
    return contents, manifest


def read_parquet(content: bytes) -> pa.Table:
    """Return the table of a file's content."""
    return pq.read_table(pa.BufferReader(content))
