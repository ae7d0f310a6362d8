"""The map of heads: a cell per layer and head, coloured by one metric."""

from collections.abc import Sequence
from typing import Literal

import altair as alt

from largeprompt.report.metrics import Metric, colour, drawable
from largeprompt.report.palette import Palette
from largeprompt.report.records import Record, typical

HEADS = alt.NamedData(name="heads")
"""The one table all charts draw from; whoever renders a chart supplies it."""

Width = int | Literal["container"]

CHOSEN_HEAD = "datum.layer == chosen_layer && datum.head == chosen_head"
CHOSEN_N = "datum.n == chosen_n"
LEFT_OUT = "left_out[datum.layer + '.' + datum.head] === true"
"""Whether the filter of the table leaves the head out."""


def choice(rows: Sequence[Record]) -> list[alt.Parameter]:
    """Return what the reader chooses, the same parameters in every chart.

    Starts at the longest length and at the head of median logit variance, with no head
    left out by the filter.
    """
    n = max(row["n"] for row in rows)
    start = typical([row for row in rows if row["n"] == n])
    return [
        alt.param(name="chosen_n", value=n),
        alt.param(name="chosen_layer", value=start["layer"]),
        alt.param(name="chosen_head", value=start["head"]),
        alt.param(name="left_out", value={}),
    ]


def head_map(
    metric: Metric, rows: Sequence[Record], palette: Palette, width: Width
) -> alt.LayerChart:
    """Draw a metric over layers (across) and heads (down) at the chosen length.

    A cell without a value, or with one that a logarithm cannot show, stays grey.
    """
    heads = 1 + max(row["head"] for row in rows)
    cells = (
        alt.Chart(HEADS)
        .transform_filter(CHOSEN_N)
        .encode(
            x=alt.X("layer:O", title="layer").axis(
                labelAngle=0, labelOverlap=True, ticks=False, domain=False
            ),
            y=alt.Y("head:O", title="head").axis(
                labelOverlap=True, ticks=False, domain=False
            ),
            tooltip=["layer:O", "head:O", _tooltip(metric), "phase:N"],
        )
    )
    void = cells.mark_rect(color=palette.void, cursor="pointer")
    filled = (
        cells.transform_filter(drawable(metric))
        .mark_rect(cursor="pointer")
        .encode(color=colour(metric, rows, palette))
    )
    veil = cells.transform_filter(LEFT_OUT).mark_rect(
        color=palette.paper, opacity=0.82, cursor="pointer"
    )
    chosen = cells.transform_filter(CHOSEN_HEAD)
    halo = chosen.mark_rect(fill=None, stroke=palette.card, strokeWidth=5)
    frame = chosen.mark_rect(fill=None, stroke=palette.ink, strokeWidth=2)
    return (
        alt.LayerChart(layer=[void, filled, veil, halo, frame])
        .add_params(*choice(rows))
        .properties(width=width, height=heads * min(26, max(8, 420 // heads)))
    )


def _tooltip(metric: Metric) -> alt.Tooltip:
    if metric.kind == "ordinal":
        return alt.Tooltip("logit_variance:Q", format=".3~r")
    return alt.Tooltip(f"{metric.column}:Q", format=".3~r")
