"""What an evaluation of compression says, in sentences."""

from collections.abc import Sequence
from typing import Any

from largeprompt.report.numbers import percent, show

Row = dict[str, Any]
OURS, EXACT = "calibrated", "exact"


def findings(rows: Sequence[Row]) -> list[str]:
    """Return a sentence for each text and budget: our method beside the best other.

    Empty when our method or every other one is missing.
    """
    told = []
    for text, budget in dict.fromkeys((row["text"], row["budget"]) for row in rows):
        here = [r for r in rows if (r["text"], r["budget"]) == (text, budget)]
        ours = next((row for row in here if row["method"] == OURS), None)
        others = [row for row in here if row["method"] not in (OURS, EXACT)]
        if ours is None or not others:
            continue
        parts = [_beside(ours, others, "mean_error", "the mean head error is")]
        if ours["kl"] is not None and any(row["kl"] is not None for row in others):
            parts.append(
                _beside(ours, others, "kl", "the divergence of next tokens is")
            )
        told.append(f"{text}, {percent(budget)} of the bytes: {'; '.join(parts)}.")
    return told


def _beside(ours: Row, others: Sequence[Row], metric: str, what: str) -> str:
    best = min(
        (row for row in others if row[metric] is not None), key=lambda r: r[metric]
    )
    start = f"{what} {show(ours[metric])}, against {show(best[metric])} of"
    if best[metric] == 0:
        return f"{start} {best['method']}, the best other"
    ratio = ours[metric] / best[metric]
    return f"{start} {best['method']}, the best other ({show(ratio)} times)"
