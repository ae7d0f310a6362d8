"""Two audits in a few numbers: their comparison at its longest length."""

import statistics
from collections import Counter
from typing import Any

import pyarrow as pa

from largeprompt.audit.comparison_columns import DIFFERENCES, RATIOS, SAME
from largeprompt.audit.overview import ERRORS

SHOWN = 8  # heads named as having changed most


def comparison_overview(heads: pa.Table, eps: float) -> dict[str, Any]:
    """Return what changed at the longest length.

    Args:
        heads: The table of a comparison.
        eps: The relative error up to which a head counts as linear.

    Returns:
        `n`, `heads` (how many) and `eps`; `moves`, how many heads went from which phase
        to which; `moved`, `changed` and `apart`, how many are in another phase, have
        another verdict, or a logit variance beyond its range over queries;
        `within_eps`, from a column of errors to how many heads are at most `eps` off in
        a and in b, and how many came and went; `median_changes`; `most_changed`, the
        heads whose logit variance changed by the largest factor.
    """
    everything = heads.to_pylist()
    longest = max(row["n"] for row in everything)
    rows = [row for row in everything if row["n"] == longest]
    moves = Counter((row["phase_a"], row["phase_b"]) for row in rows)
    ranked = sorted(rows, key=lambda row: -abs(row["logit_variance_change"] or 0.0))
    return {
        "n": longest,
        "heads": len(rows),
        "eps": eps,
        "moves": [{"a": a, "b": b, "heads": k} for (a, b), k in moves.most_common()],
        "moved": sum(row["move"] != SAME for row in rows),
        "changed": sum(row["changed"] for row in rows),
        "apart": sum(row["apart"] for row in rows),
        "within_eps": {
            name: _crossed(
                [(r[f"{name}_a"] <= eps, r[f"{name}_b"] <= eps) for r in rows]
            )
            for name in ERRORS
        },
        "median_changes": {
            name: _median([row[f"{name}_change"] for row in rows])
            for name in (*RATIOS, *DIFFERENCES)
        },
        "most_changed": [
            {
                "text": row["text"],
                "layer": row["layer"],
                "head": row["head"],
                "logit_variance_change": row["logit_variance_change"],
            }
            for row in ranked[:SHOWN]
        ],
    }


def _crossed(pairs: list[tuple[bool, bool]]) -> dict[str, int]:
    return {
        "a": sum(a for a, _ in pairs),
        "b": sum(b for _, b in pairs),
        "came": sum(b and not a for a, b in pairs),
        "went": sum(a and not b for a, b in pairs),
    }


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
