"""How many heads are linear at which length: measured, and beyond by the exact law.

Beyond what was read the law extrapolates: tokens are independent Gaussians, and neither
the moments nor the logit variance change with the length. A head in a sliding window
never sees more tokens than the window.
"""

import math
from collections.abc import Sequence
from typing import Any

from largeprompt.audit.verdict import MISSED

LENGTHS = (1_024, 8_192, 100_000, 1_000_000)

Entry = dict[str, Any]


def outlook(
    rows: Sequence[dict[str, Any]], eps: float, context: int | None
) -> list[Entry]:
    """Return how many heads are linear at each length, shortest first.

    Args:
        rows: The table of an audit, of one text or several.
        eps: The relative error up to which a head is linear.
        context: The most tokens the model reads, where that is known.

    Returns:
        One entry a length: `n`; `source`, measured or law; `heads`, how many there
        are; `linear`, those whose linear limit is within eps of the output, in sample
        and held out, or by the law needs no more than `n` tokens; and, from the law
        alone, `trusted`, those of them whose error the law foretells to a factor of 2
        at the longest length measured; null where measured.
    """
    audited = sorted({row["n"] for row in rows})
    longest = [row for row in rows if row["n"] == audited[-1]]
    named = {*LENGTHS, *(() if context is None else (context,))}
    measured = [_measured([r for r in rows if r["n"] == n], n, eps) for n in audited]
    foretold = [_foretold(longest, n, eps) for n in named if n > audited[-1]]
    return sorted([*measured, *foretold], key=lambda entry: entry["n"])


def policy(rows: Sequence[dict[str, Any]], eps: float) -> dict[str, int]:
    """Return what a compression within eps would do with how many heads.

    Args:
        rows: Rows of the heads at one length.
        eps: The relative error allowed.

    Returns:
        `limit`: the whole prompt becomes the linear limit; `bulk`: all but the first
        and the recent tokens do; `exact`: the head keeps its tokens.
    """
    whole = sum(linear_error(row) <= eps for row in rows)
    bulk = sum(linear_error(row) > eps >= row["linear_error_kept"] for row in rows)
    return {"limit": whole, "bulk": bulk, "exact": len(rows) - whole - bulk}


def _measured(rows: Sequence[dict[str, Any]], n: int, eps: float) -> Entry:
    linear = sum(linear_error(row) <= eps for row in rows)
    return {
        "n": n,
        "source": "measured",
        "heads": len(rows),
        "linear": linear,
        "trusted": None,
    }


def _foretold(rows: Sequence[dict[str, Any]], n: int, eps: float) -> Entry:
    reached = [
        row
        for row in rows
        if row["tokens_needed"] is not None
        and row["tokens_needed"] <= min(n, row["window"] or math.inf)
    ]
    trusted = [
        row
        for row in reached
        if linear_error(row) <= max(eps, MISSED * row["limit_error_law"])
    ]
    return {
        "n": n,
        "source": "law",
        "heads": len(rows),
        "linear": len(reached),
        "trusted": len(trusted),
    }


def linear_error(row: dict[str, Any]) -> float:
    """Return the worse error of a head's linear limit, in sample or held out."""
    return max(row["linear_error_in_sample"], row["limit_error_held_out"])


def in_words(entries: Sequence[Entry]) -> str:
    """Say how many heads are linear at the longest length read, and beyond."""
    measured = [entry for entry in entries if entry["source"] == "measured"][-1]
    beyond = [
        f"{entry['linear']:,} at {entry['n']:,} tokens ({entry['trusted']:,})"
        for entry in entries
        if entry["source"] == "law"
    ]
    here = (
        f"Linear as they stand: {measured['linear']:,} of {measured['heads']:,} at "
        f"{measured['n']:,} tokens."
    )
    if not beyond:
        return here
    return (
        f"{here} Were longer prompts more independent Gaussian tokens of the same "
        f"moments, {', '.join(beyond)}; in brackets how many of them have an error "
        "here that the law foretells to a factor of 2."
    )
