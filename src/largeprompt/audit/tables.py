"""Rows as they are measured, each with its curves -> the two tables of an audit."""

from collections.abc import Sequence

import pyarrow as pa

from largeprompt.audit.columns import SCHEMA
from largeprompt.audit.profiles import PROFILE_SCHEMA
from largeprompt.audit.rows import Row

PLACE = ("text", "layer", "head", "n")
CURVES = "curves"

_CURVE = pa.struct([f for f in PROFILE_SCHEMA if f.name not in PLACE])
ROW_SCHEMA = SCHEMA.append(pa.field(CURVES, pa.list_(_CURVE)))
"""A row of the table of heads with the curves that were measured with it."""


def tables(rows: Sequence[Row]) -> tuple[pa.Table, pa.Table]:
    """Return the table of heads, and the curves of each text's longest length.

    Args:
        rows: Rows of the table of heads, each with its list of curves.
    """
    longest: dict[str, int] = {}
    for row in rows:
        longest[row["text"]] = max(row["n"], longest.get(row["text"], 0))
    curves = [
        {**{name: row[name] for name in PLACE}, **curve}
        for row in rows
        if row["n"] == longest[row["text"]]
        for curve in row[CURVES]
    ]
    heads = [{name: row.get(name) for name in SCHEMA.names} for row in rows]
    return (
        pa.Table.from_pylist(heads, SCHEMA),
        pa.Table.from_pylist(curves, PROFILE_SCHEMA),
    )
