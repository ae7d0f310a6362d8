"""The phase map: every head's logit variance against the number of tokens it sees."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import altair as alt
import numpy as np

from largeprompt.laws import Phase
from largeprompt.report.head_map import (
    CHOSEN_HEAD,
    CHOSEN_N,
    HEADS,
    LEFT_OUT,
    Width,
    choice,
)
from largeprompt.report.metrics import log_ticks, phase_scale
from largeprompt.report.palette import Palette
from largeprompt.report.records import Record, lengths, present

Interval: TypeAlias = tuple[float, float]

STRIP = 0.7
"""The share of the room between two lengths over which a strip of heads spreads."""


def phase_map(rows: Sequence[Record], palette: Palette, width: Width) -> alt.LayerChart:
    """Draw all heads on the plane (n, s²) with the phases shaded behind them.

    Each length is a strip of heads, first layer left, last layer right, so that the
    heads of a length do not cover each other. The chosen length stands out; the chosen
    head is followed through all lengths, with the 10% to 90% range over its queries.
    """
    seen = sorted({row["effective_n"] for row in rows})
    variances = [value for value in present(rows, "logit_variance") if value > 0]
    across = max(1.2, seen[0] / 1.7), seen[-1] * 1.9 * (seen[-1] / seen[0]) ** 0.25
    upright = min([0.5, *variances]) / 1.3, max([60, *variances]) * 1.3
    x = (
        alt.X(
            "x:Q",
            title="tokens the head sees; a strip runs from the first layer to the last",
        )
        .scale(type="log", domain=across, nice=False)
        .axis(values=seen, format=",d", grid=False, labelOverlap=True)
    )
    y = (
        alt.Y("y:Q", title="logit variance s²")
        .scale(type="log", domain=upright, nice=False)
        .axis(values=log_ticks(*upright), format="~r", grid=False)
    )
    plane = alt.Chart().encode(x=x, y=y)
    return (
        alt.LayerChart(
            layer=[
                *_regions(plane, across, upright, palette),
                *_heads(plane, rows, palette),
            ]
        )
        .add_params(*choice(rows))
        .properties(width=width, height=400)
    )


def _regions(
    plane: alt.Chart, across: Interval, upright: Interval, palette: Palette
) -> list[alt.Chart]:
    """Shade the phases: linear up to log(n)/2, frozen from 2 log n (docs/theory.md)."""
    grid = [float(n) for n in np.geomspace(*across, 60)]
    bottom, top = upright
    bounds = {
        Phase.LINEAR: lambda n: (bottom, math.log(n) / 2),
        Phase.HEAVY_TAILED: lambda n: (math.log(n) / 2, 2 * math.log(n)),
        Phase.FROZEN: lambda n: (2 * math.log(n), top),
    }
    bands: list[dict[str, Any]] = []
    names: list[dict[str, Any]] = []
    for phase, bound in bounds.items():
        for n in grid:
            low, high = (min(max(edge, bottom), top) for edge in bound(n))
            bands.append({"phase": phase.value, "x": n, "y": low, "to": high})
        low, high = bound(across[1])
        names.append({"phase": phase.value, "x": across[1], "y": math.sqrt(low * high)})
    colour = alt.Color("phase:N", scale=phase_scale(palette), legend=None)
    edges = [
        {"x": across[1], "y": math.log(across[1]) / 2, "text": "s² = ½ log n"},
        {"x": across[1], "y": 2 * math.log(across[1]), "text": "s² = 2 log n"},
    ]
    return [
        plane.properties(data=alt.InlineData(values=bands))
        .mark_area(opacity=0.16, line={"strokeWidth": 0})
        .encode(y2="to:Q", color=colour),
        plane.properties(data=alt.InlineData(values=names))
        .mark_text(align="right", dx=-8, fontSize=13, fontWeight=600)
        .encode(text="phase:N", color=colour),
        plane.properties(data=alt.InlineData(values=edges))
        .mark_text(color=palette.muted, align="right", baseline="bottom", dx=-8, dy=-2)
        .encode(text="text:N"),
    ]


def _heads(
    plane: alt.Chart, rows: Sequence[Record], palette: Palette
) -> list[alt.Chart]:
    """Draw a point per head and length, and the chosen head's way through lengths."""
    layers = 1 + max(row["layer"] for row in rows)
    gaps = [math.log(b / a) for a, b in itertools.pairwise(lengths(rows))]
    spread = STRIP * min(gaps, default=math.log(2))
    shift = f"exp({spread:.4f} * ((datum.layer + 0.5) / {layers} - 0.5))"
    heads = (
        plane.properties(data=HEADS)
        .transform_filter("datum.logit_variance > 0")
        .transform_calculate(x=f"datum.effective_n * {shift}", y="datum.logit_variance")
    )
    chosen = heads.transform_filter(CHOSEN_HEAD)
    points = heads.mark_point(filled=True, size=26, cursor="pointer").encode(
        color=alt.Color("phase:N", scale=phase_scale(palette), legend=None),
        opacity=alt.condition(
            f"{CHOSEN_N} && !({LEFT_OUT})", alt.value(0.9), alt.value(0.22)
        ),
        tooltip=[
            "layer:O",
            "head:O",
            alt.Tooltip("effective_n:Q", format=",d"),
            alt.Tooltip("logit_variance:Q", format=".3~r"),
            "phase:N",
        ],
    )
    return [
        points,
        chosen.mark_rule(color=palette.ink, strokeWidth=1.5, opacity=0.6).encode(
            y="logit_variance_low:Q", y2="logit_variance_high:Q"
        ),
        chosen.mark_line(color=palette.ink, strokeWidth=1.5),
        chosen.mark_point(fill=palette.ink, stroke=palette.card, size=80, opacity=1),
    ]
