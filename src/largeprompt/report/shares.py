"""How many heads are linear, by length: measured, and by the exact law beyond."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from largeprompt.report.curves import DASHED, SOLID
from largeprompt.report.head_map import Width, choice
from largeprompt.report.metrics import log_ticks
from largeprompt.report.palette import Palette
from largeprompt.report.records import Record, at_length, lengths

FARTHEST = 1_000_000
CRITERIA = {
    "sinks and recent kept": "linear_error_kept",
    "in sample": "linear_error_in_sample",
    "held out": "limit_error_held_out",
}
LAW = "held out, exact law"


def linear_shares(rows: Sequence[Record], eps: float) -> list[dict[str, Any]]:
    """Return the share of heads whose linear limit is at most `eps` off, by length.

    Up to the longest length it is measured; the exact law's, from `tokens_needed` at
    the longest length with moments and logit variance held fixed, goes on beyond.

    Args:
        rows: The records of all heads.
        eps: The relative error that a head must meet.

    Returns:
        Records of `n`, `criterion`, `share` and the number of `heads`.
    """
    found: list[dict[str, Any]] = []
    asked = lengths(rows)

    def add(n: int, criterion: str, linear: Sequence[bool]) -> None:
        share = sum(linear) / len(linear)
        found.append(
            {"n": n, "criterion": criterion, "share": share, "heads": sum(linear)}
        )

    for n in asked:
        here = at_length(rows, n)
        for criterion, column in CRITERIA.items():
            add(n, criterion, [(row[column] or 0.0) <= eps for row in here])
    longest = at_length(rows, asked[-1])
    for n in _extrapolated(asked):
        known = [row["tokens_needed"] for row in longest]
        windows = [row["window"] or n for row in longest]
        reached = [
            needed is not None and needed <= min(n, window)
            for needed, window in zip(known, windows, strict=True)
        ]
        add(n, LAW, reached)
    return found


def _extrapolated(asked: Sequence[int]) -> list[int]:
    """Return the lengths asked for, and doublings of the longest up to the farthest."""
    beyond = [asked[-1]]
    while beyond[-1] * 2 < FARTHEST:
        beyond.append(beyond[-1] * 2)
    return [*asked[:-1], *beyond, *[FARTHEST] * (beyond[-1] < FARTHEST)]


def share_curve(
    rows: Sequence[Record], palette: Palette, width: Width, eps: float
) -> alt.LayerChart:
    """Draw the share of linear heads against the length; the dashes are the law's."""
    points = linear_shares(rows, eps)
    names = [*CRITERIA, LAW]
    colours = [palette.kept, palette.in_sample, palette.held_out, palette.held_out]
    dashes = [SOLID, SOLID, SOLID, DASHED]
    ends = [points[0]["n"] / 1.15, max(point["n"] for point in points) * 1.15]
    legend = alt.Legend(
        title=None, orient="top", columns=2, symbolType="stroke", labelLimit=220
    )
    lines = alt.Chart(alt.InlineData(values=points)).encode(
        x=alt.X("n:Q", title="prompt length (tokens)")
        .scale(type="log", domain=ends, nice=False)
        .axis(values=log_ticks(*ends), format="~s", grid=False, labelOverlap=True),
        y=alt.Y("share:Q", title=f"heads within ε = {eps:g}")
        .scale(domain=[0, 1])
        .axis(format="%", tickCount=5),
        color=alt.Color("criterion:N", legend=legend).scale(
            domain=names, range=colours
        ),
        strokeDash=alt.StrokeDash("criterion:N", legend=legend).scale(
            domain=names, range=dashes
        ),
        tooltip=[
            "criterion:N",
            alt.Tooltip("n:Q", format=",d"),
            alt.Tooltip("share:Q", format=".1%"),
            "heads:Q",
        ],
    )
    dots = lines.transform_filter(alt.FieldOneOfPredicate("criterion", [*CRITERIA]))
    layers = [lines.mark_line(strokeWidth=2), dots.mark_point(filled=True, opacity=1)]
    chart = alt.LayerChart(layer=layers).add_params(*choice(rows))
    return chart.properties(width=width, height=300)
