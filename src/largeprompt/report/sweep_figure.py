"""The figure of a sweep: means over the cells that differ in nothing that is drawn."""

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import altair as alt
import pyarrow as pa

from largeprompt.experiments.sweep.experiment import Drawing
from largeprompt.experiments.sweep.options import check_known
from largeprompt.report.metrics import log_ticks
from largeprompt.report.palette import LIGHT
from largeprompt.report.rendering import rendered

Row: TypeAlias = dict[str, Any]

FEW = (
    LIGHT.in_sample,
    LIGHT.held_out,
    LIGHT.kept,
    LIGHT.frozen,
    LIGHT.heavy_tailed,
    LIGHT.linear,
)
COLUMNS = 3  # panels side by side
MOST_PANELS = 24
FEW_TICKS = 10  # values along an axis that are all named


def sweep_figure(
    table: pa.Table, drawing: Drawing, experiment: str, suffix: str
) -> bytes:
    """Return the figure of a sweep as the content of a file.

    Args:
        table: The rows of the finished cells, `gathered`.
        drawing: Which columns are drawn as what.
        experiment: The name of the experiment.
        suffix: `.svg`, `.png`, `.pdf` or `.html`.

    Raises:
        ValueError: A column is not there or cannot be drawn, or the suffix unknown.
    """
    rows = _averaged(table.to_pylist(), drawing, table.column_names)
    chart = sweep_chart(rows, drawing)
    cells = max((row["count"] for row in rows), default=1)
    return rendered(
        chart.to_dict(),
        f"{experiment}: {drawing.y} against {drawing.x}",
        f"a point is the (geometric) mean of up to {cells} values, a bar their range"
        + (f"; dashed: {drawing.reference}" if drawing.reference else ""),
        suffix,
    )


def sweep_chart(rows: Sequence[Row], drawing: Drawing) -> alt.ConcatChart:
    """Return a panel for each value of the panel's column, all on the same axes."""
    x = _axis("x", drawing.x, [row["x"] for row in rows])
    seen = [row[end] for row in rows for end in ("least", "most")]
    seen += [row["reference"] for row in rows if row["reference"] is not None]
    y = _axis("y", drawing.y, seen)
    colour = _colour(drawing.colour, list(dict.fromkeys(row["colour"] for row in rows)))
    panels = []
    for value in dict.fromkeys(row["panel"] for row in rows):
        here = [row for row in rows if row["panel"] == value]
        plane = alt.Chart(alt.InlineData(values=here)).encode(x=x, color=colour)
        layers = [
            plane.transform_filter("isValid(datum.reference)")
            .mark_line(strokeWidth=1.5, strokeDash=[6, 4])
            .encode(y=alt.Y("reference:Q", **y)),
            plane.mark_rule(strokeWidth=1.5).encode(
                y=alt.Y("least:Q", **y), y2="most:Q"
            ),
            plane.mark_point(filled=True, size=40, opacity=1).encode(
                y=alt.Y("mean:Q", **y)
            ),
        ]
        if not drawing.reference:
            lines = plane.mark_line(strokeWidth=1.5).encode(y=alt.Y("mean:Q", **y))
            layers.insert(0, lines)
        title = "" if value is None else f"{drawing.panel}: {value}"
        panel = alt.LayerChart(layer=layers)
        panels.append(panel.properties(width=300, height=280, title=title))
    return alt.ConcatChart(concat=panels, columns=COLUMNS)


def _averaged(rows: Iterable[Row], drawing: Drawing, names: Sequence[str]) -> list[Row]:
    """Return a row for each point of the figure."""
    drawn = [drawing.x, drawing.y, drawing.colour, drawing.panel, drawing.reference]
    for name in drawn:
        if name:
            check_known("a column of the figure", name, names)
    places = (drawing.panel, drawing.colour, drawing.x)

    def place(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] if name else None for name in places)

    kept = [row for row in rows if _is_number(row[drawing.y])]
    kept = [row for row in kept if _is_number(row[drawing.x])]
    if not kept:
        raise ValueError(
            f"{drawing.x} and {drawing.y} must be numbers to be drawn; got none"
        )
    first = {p: k for k, p in reversed(list(enumerate(map(place, kept))))}
    kept.sort(key=lambda row: first[place(row)])
    averaged = []
    for (panel, colour, x), group in itertools.groupby(kept, key=place):
        members = list(group)
        values = [row[drawing.y] for row in members]
        told = [row[drawing.reference] for row in members] if drawing.reference else []
        averaged.append(
            {
                "panel": panel,
                "colour": colour,
                "x": x,
                "mean": _mean(values),
                "least": min(values),
                "most": max(values),
                "reference": _mean(told) if told and None not in told else None,
                "count": len(values),
            }
        )
    if len({row["panel"] for row in averaged}) > MOST_PANELS:
        raise ValueError(
            f"{drawing.panel} must have at most {MOST_PANELS} values to be panels"
        )
    return averaged


def _mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive numbers, else the arithmetic one."""
    if min(values) > 0:
        return statistics.geometric_mean(values)
    return statistics.fmean(values)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def _axis(place: str, title: str, values: Sequence[float]) -> Any:
    """Return an axis, logarithmic where positive values span more than a factor 8."""
    low, high = min(values), max(values)
    if low > 0 and high / low > 8:
        ends = [low / 1.15, high * 1.15]
        scale = alt.Scale(type="log", domain=ends, nice=False)
        own = sorted(set(values))
        few = place == "x" and len(own) <= FEW_TICKS
        ticks = own if few else log_ticks(*ends)
        axis = alt.Axis(values=ticks, format="~g", labelOverlap=True)
    else:
        scale, axis = alt.Scale(zero=False), alt.Axis(format="~g")
    if place == "x":
        return alt.X("x:Q", title=title, scale=scale, axis=axis)
    return {"title": title, "scale": scale, "axis": axis}


def _colour(title: str, values: Sequence[Any]) -> alt.Color:
    """Return the colours of a few values as named ones, of many numbers as shades."""
    legend = alt.Legend(title=title, orient="bottom", columns=6)
    if len(values) <= len(FEW):
        scale = alt.Scale(domain=list(values), range=list(FEW[: len(values)]))
        return alt.Color("colour:N", legend=legend, scale=scale)
    if all(_is_number(value) for value in values):
        low, high = min(values), max(values)
        kind = "log" if low > 0 and high / low > 8 else "linear"
        shades = alt.Scale(scheme="viridis", type=kind, domain=[low, high])
        return alt.Color(
            "colour:Q", legend=alt.Legend(title=title, orient="bottom"), scale=shades
        )
    return alt.Color("colour:N", legend=legend)
