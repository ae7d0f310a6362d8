"""Every head as a point: one column against another that should be equal to it."""

import math
from collections.abc import Sequence

import altair as alt

from largeprompt.report.head_map import (
    CHOSEN_HEAD,
    CHOSEN_N,
    HEADS,
    LEFT_OUT,
    Width,
    choice,
)
from largeprompt.report.metrics import Metric, log_ticks
from largeprompt.report.palette import Palette
from largeprompt.report.records import Record, present


def scatter(
    rows: Sequence[Record],
    x: Metric,
    y: Metric,
    colours: Metric,
    palette: Palette,
    width: Width,
) -> alt.LayerChart:
    """Draw a point per head at the chosen length, and the line of equality.

    Both axes have the same ends at every length.

    Args:
        rows: The records of all heads.
        x: The column along; its scale is that of both axes.
        y: The column upwards.
        colours: The names that colour the points.
        palette: The colours.
        width: Of the chart, in pixels.
    """
    log = x.kind == "log"
    values = [v for column in (x.column, y.column) for v in present(rows, column)]
    values = [value for value in values if value > 0 or not log] or [1.0]
    low, high = min(values), max(values)
    if log:
        ends = [low / 1.15, high * 1.15]
    else:
        room = 0.04 * (high - low) or 0.5
        ends = [low - room, high + room]
    scale = alt.Scale(type="log" if log else "linear", domain=ends, nice=False)
    axis = {"grid": False, "format": "~s" if high > 1e6 else ",~r"}
    if log:
        axis["values"] = log_ticks(*ends) if ends[1] > 3 * ends[0] else [low, high]
    plane = alt.Chart().encode(
        x=alt.X("x:Q", title=x.title, scale=scale).axis(**axis, labelOverlap=True),
        y=alt.Y("y:Q", title=y.title, scale=scale).axis(**axis),
    )
    shown = f"isValid(datum.{x.column}) && isValid(datum.{y.column})"
    if log:
        shown += f" && datum.{x.column} > 0 && datum.{y.column} > 0"
    heads = (
        plane.properties(data=HEADS)
        .transform_filter(f"{CHOSEN_N} && {shown}")
        .transform_calculate(x=f"datum.{x.column}", y=f"datum.{y.column}")
    )
    diagonal = [{"x": end, "y": end} for end in ends]
    points = heads.mark_point(filled=True, size=30, cursor="pointer").encode(
        color=alt.Color(
            f"{colours.column}:N",
            scale=colours.named(palette),
            legend=alt.Legend(title=None, orient="top"),
        ),
        opacity=alt.condition(LEFT_OUT, alt.value(0.12), alt.value(0.8)),
        tooltip=[
            "layer:O",
            "head:O",
            alt.Tooltip("x:Q", title=x.title, format=".3~r"),
            alt.Tooltip("y:Q", title=y.title, format=".3~r"),
            f"{colours.column}:N",
        ],
    )
    chosen = heads.transform_filter(CHOSEN_HEAD)
    layers = [
        plane.properties(data=alt.InlineData(values=diagonal)).mark_line(
            color=palette.muted, strokeDash=[1, 3]
        ),
        points,
        chosen.mark_point(fill=palette.ink, stroke=palette.card, size=80, opacity=1),
    ]
    chart = alt.LayerChart(layer=layers).add_params(*choice(rows))
    return chart.properties(width=width, height=300)


def rank_correlation(rows: Sequence[Record], x: str, y: str) -> float | None:
    """Return Spearman's correlation of two columns, None where it is not defined."""
    pairs = [(row[x], row[y]) for row in rows]
    pairs = [(a, b) for a, b in pairs if a is not None and b is not None]
    first = _ranks([a for a, _ in pairs])
    second = _ranks([b for _, b in pairs])
    middle = (len(pairs) + 1) / 2
    along = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    spread = sum((a - middle) ** 2 for a in first) * sum(
        (b - middle) ** 2 for b in second
    )
    return along / math.sqrt(spread) if spread > 0 else None


def _ranks(values: Sequence[float]) -> list[float]:
    """Return ranks from 1; equal values share the mean of theirs."""
    order = sorted(values)
    first: dict[float, int] = {}
    count: dict[float, int] = {}
    for place, value in enumerate(order, 1):
        first.setdefault(value, place)
        count[value] = count.get(value, 0) + 1
    return [first[value] + (count[value] - 1) / 2 for value in values]
