"""What a concentration experiment found, and its files."""

import dataclasses
import datetime
import hashlib
import importlib.metadata
import io
import json
import math
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, final

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from largeprompt.audit.manifest import peak_rss_bytes
from largeprompt.errors import ResultError
from largeprompt.experiments.cells import Cell
from largeprompt.experiments.concentration import Concentration
from largeprompt.experiments.slopes import Slope, fit_slopes

FORMAT = "largeprompt.concentration/1"
TABLE, SLOPES, MANIFEST = "concentration.parquet", "slopes.json", "manifest.json"
FILES = (TABLE, SLOPES, MANIFEST)
PACKAGES = ("largeprompt", "torch", "numpy", "scipy", "pyarrow")

DEFINITIONS = {
    "law": "The law of the tokens.",
    "seed": "The number of the head and its queries, from 0.",
    "n": "The prompt length, in tokens.",
    "quantity": "What the error is of: output, U gradient or V gradient.",
    "mean_square": "Mean over queries and prompts of the squared distance to limit.",
    "standard_error": "Standard error of mean_square, given the queries.",
    "exact": "Expectation of mean_square given the queries, by the exact law.",
    "bound": "Proven bound on that expectation; null where there is none.",
}
SCHEMA = pa.schema(
    [
        ("law", pa.string()),
        ("seed", pa.int32()),
        ("n", pa.int64()),
        ("quantity", pa.string()),
        ("mean_square", pa.float64()),
        ("standard_error", pa.float64()),
        ("exact", pa.float64()),
        ("bound", pa.float64()),
    ]
)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class ConcentrationResult:
    """Errors of every law, seed, length and quantity, their slopes, and the manifest.

    Attributes:
        table: One row per law, seed, length and quantity; see `DEFINITIONS`.
        slopes: One per law and quantity.
        manifest: What was run, with which versions, where and how long.
    """

    table: pa.Table
    slopes: tuple[Slope, ...]
    manifest: dict[str, Any]

    @classmethod
    def of(
        cls, experiment: Concentration, cells: Sequence[Cell], started: float
    ) -> Self:
        """Gather the cells of an experiment that ends now.

        Args:
            experiment: The experiment.
            cells: All its cells.
            started: `time.perf_counter()` when it began.
        """
        rows = [row for cell in cells for row in _rows(cell)]
        return cls(
            table=pa.Table.from_pylist(rows, schema=SCHEMA),
            slopes=tuple(fit_slopes(cells, experiment.confidence)),
            manifest={
                "format": FORMAT,
                "arguments": experiment.description(),
                "seed": experiment.seed,
                "versions": {
                    **{name: importlib.metadata.version(name) for name in PACKAGES},
                    "python": platform.python_version(),
                },
                "machine": (
                    f"{platform.platform()}, {os.cpu_count()} cores, "
                    f"{torch.get_num_threads()} threads"
                ),
                "created": datetime.datetime.now(datetime.UTC).isoformat(
                    timespec="seconds"
                ),
                "seconds": time.perf_counter() - started,
                "peak_rss_bytes": peak_rss_bytes(),
                "definitions": DEFINITIONS,
            },
        )

    def files(self) -> dict[str, bytes]:
        """Return the files of the result by name, the manifest last.

        It holds the hashes of the other two, so that files that do not belong together
        are noticed by `load`.
        """
        buffer = io.BytesIO()
        pq.write_table(self.table, buffer)
        slopes = [dataclasses.asdict(slope) for slope in self.slopes]
        contents = {TABLE: buffer.getvalue(), SLOPES: _json(slopes)}
        hashes = {k: hashlib.sha256(v).hexdigest() for k, v in contents.items()}
        return {**contents, MANIFEST: _json({**self.manifest, "sha256": hashes})}

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read the files of a result.

        Raises:
            ResultError: A file is missing, truncated, of another format, or the files
                do not belong together.
        """
        directory = Path(directory)
        try:
            contents = {name: (directory / name).read_bytes() for name in FILES}
        except OSError as error:
            raise ResultError(f"no concentration experiment there: {error}") from error
        try:
            manifest = json.loads(contents[MANIFEST])
        except ValueError as error:
            raise ResultError(f"{directory / MANIFEST} is no JSON: {error}") from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ResultError(f"{directory / MANIFEST} is not of the format {FORMAT}")
        hashes = manifest.pop("sha256", {})
        for name in (TABLE, SLOPES):
            if hashlib.sha256(contents[name]).hexdigest() != hashes.get(name):
                raise ResultError(
                    f"{directory / name} is truncated, or not the one that "
                    f"{MANIFEST} describes"
                )
        slopes = (Slope(**slope) for slope in json.loads(contents[SLOPES]))
        table = pq.read_table(pa.BufferReader(contents[TABLE]))
        return cls(table, tuple(slopes), manifest)


def _rows(cell: Cell) -> list[dict[str, Any]]:
    return [
        {
            "law": cell.law.value,
            "seed": cell.seed,
            "n": n,
            "quantity": cell.quantity.value,
            "mean_square": cell.mean_square[k],
            "standard_error": cell.standard_error[k],
            "exact": None if cell.exact is None else cell.exact[k],
            "bound": cell.bound[k] if cell.bound[k] < math.inf else None,
        }
        for k, n in enumerate(cell.lengths)
    ]


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
