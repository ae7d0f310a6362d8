"""The curves of the heads as the page carries them: every list of numbers once."""

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from largeprompt.audit.profiles import TOKEN_LISTS

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


LISTS = frozenset(kind.name for kind in TOKEN_LISTS)


def token_lists(curves: Sequence[Curve]) -> dict[str, Any]:
    """Return the lists of tokens of the heads, each list and each word once.

    Returns:
        `words`; `lists` of (position, place in `words`, number), the place -1 where it
        is not known what a token says; and `heads`: from `layer.head` to a kind of list
        and its place in `lists`.
    """
    words: dict[str, int] = {}
    places: dict[tuple[Any, ...], int] = {}
    heads: dict[str, dict[str, int]] = {}
    for curve in curves:
        if curve["profile"] not in LISTS:
            continue
        labels = curve["labels"] or [None] * len(curve["x"])
        told = [
            -1 if label is None else words.setdefault(label, len(words))
            for label in labels
        ]
        positions = [int(x) for x in curve["x"]]
        entries = tuple(zip(positions, told, curve["measured"], strict=True))
        mine = heads.setdefault(f"{curve['layer']}.{curve['head']}", {})
        mine[curve["profile"]] = places.setdefault(entries, len(places))
    return {
        "words": list(words),
        "lists": [[list(entry) for entry in entries] for entries in places],
        "heads": heads,
    }


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
        if curve["profile"] in LISTS:
            continue
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
