"""The curves of the heads as the page carries them: every list of numbers once."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

Curve: TypeAlias = dict[str, Any]
"""A row of `profiles.parquet`; lists of plain numbers and None."""

DIGITS = 4


def curves_of(profiles: pa.Table | None) -> list[Curve]:
    """Return the curves at the longest length of each head, rounded to four digits.

    Args:
        profiles: The second table of an audit; None where there is none.
    """
    rows = [] if profiles is None else profiles.to_pylist()
    longest: dict[tuple[Any, ...], Curve] = {}
    for row in rows:
        place = (row["layer"], row["head"], row["profile"])
        if place not in longest or longest[place]["n"] < row["n"]:
            longest[place] = row
    return [
        {
            **row,
            "x": _rounded(row["x"]),
            "measured": _rounded(row["measured"]),
            "law": None if row["law"] is None else _rounded(row["law"]),
        }
        for row in longest.values()
    ]


def pooled(curves: Sequence[Curve]) -> dict[str, Any]:
    """Return curves with each list of numbers written once.

    Returns:
        `lists`, and `heads`: from `layer.head` to a list of (profile, x, measured,
        law), the last three places in `lists`, the law -1 where there is none.
    """
    places: dict[tuple[float | None, ...], int] = {}

    def place(numbers: list[float | None] | None) -> int:
        if numbers is None:
            return -1
        return places.setdefault(tuple(numbers), len(places))

    heads: dict[str, list[Any]] = {}
    for curve in curves:
        lists = [place(curve[name]) for name in ("x", "measured", "law")]
        key = f"{curve['layer']}.{curve['head']}"
        heads.setdefault(key, []).append([curve["profile"], *lists])
    return {"lists": [list(numbers) for numbers in places], "heads": heads}


def _rounded(numbers: Sequence[float | None]) -> list[float | None]:
    return [
        None if value is None or not math.isfinite(value) else _round(value)
        for value in numbers
    ]


def _round(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
