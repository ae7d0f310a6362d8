"""The rows of an audit as plain data: what charts, table and words share."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from largeprompt.audit import AuditResult

Record: TypeAlias = dict[str, Any]
"""One head at one length: a column's name and its value, None where there is none."""


def records(result: AuditResult) -> list[Record]:
    """Return one record per layer, head and length; what is not finite becomes None."""
    return plain_records(result.heads)


def plain_records(heads: pa.Table) -> list[Record]:
    """Return the rows of a table of heads, by length, layer and head."""
    return [
        {column: _finite(value) for column, value in row.items()}
        for row in heads.sort_by(
            [("n", "ascending"), ("layer", "ascending"), ("head", "ascending")]
        ).to_pylist()
    ]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def lengths(rows: Sequence[Record]) -> list[int]:
    """Return the lengths of the audit, ascending."""
    return sorted({row["n"] for row in rows})


def at_length(rows: Sequence[Record], n: int) -> list[Record]:
    """Return the records of one length."""
    return [row for row in rows if row["n"] == n]


def present(rows: Sequence[Record], column: str) -> list[float]:
    """Return the values that a column has."""
    return [row[column] for row in rows if row[column] is not None]


def has(rows: Sequence[Record], column: str) -> bool:
    """Return whether a column has a value in some record."""
    return any(row[column] is not None for row in rows)


def typical(rows: Sequence[Record]) -> Record:
    """Return the record whose logit variance is the (lower) median of them all."""
    ranked = sorted(rows, key=lambda row: row["logit_variance"] or 0.0)
    return ranked[(len(ranked) - 1) // 2]
