"""The figure of a plan: its error against the prompt length, and the phases behind."""

import itertools
import math
from pathlib import Path
from typing import Any

import altair as alt

from largeprompt.audit.files import write_whole
from largeprompt.laws import Phase
from largeprompt.laws.plan import Plan
from largeprompt.laws.plan_curves import PlanCurves
from largeprompt.laws.query_plan import QueryPlan
from largeprompt.report.metrics import log_ticks
from largeprompt.report.palette import LIGHT
from largeprompt.report.rendering import rendered

SERIES = {  # a curve's name in words, its colour and its dashes
    "exact": ("exact law", LIGHT.ink, [1, 0]),
    "bound": ("proven bound", LIGHT.held_out, [6, 4]),
    "asymptotic": ("leading order", LIGHT.in_sample, [1, 3]),
}
HEADROOM = 4.0  # above the largest exact error: bounds and leading orders leave there


def write_plan_figure(curves: PlanCurves, plan: Plan | QueryPlan, path: Path) -> None:
    """Draw a plan on its curves.

    Args:
        curves: The errors against the length.
        plan: The plan, a point on the exact curve.
        path: Where to; `.svg`, `.png`, `.pdf` or `.html`.

    Raises:
        ValueError: Another suffix.
    """
    query = "a random query" if isinstance(plan, QueryPlan) else "one query"
    write_whole(
        path,
        rendered(
            plan_chart(curves, plan).to_dict(),
            "Error of attention against the length of the prompt",
            f"logit variance {plan.logit_variance:.4g}, dimension {plan.dim:.4g}, "
            f"{query}: {plan.eps:.3g} at {plan.n:,} tokens",
            path.suffix,
        ),
    )


def plan_chart(curves: PlanCurves, plan: Plan | QueryPlan) -> alt.LayerChart:
    """Return the layers: phases, curves, the plan."""
    across = float(curves.n[0]), float(curves.n[-1])
    upright = float(curves.exact.min()) / 1.5, HEADROOM * float(curves.exact.max())
    x = (
        alt.X("x:Q", title="prompt length (tokens)")
        .scale(type="log", domain=across, nice=False)
        .axis(
            values=log_ticks(*across),
            format=".0e" if across[1] > 1e6 else ",d",
            grid=False,
        )
    )
    y = (
        alt.Y("y:Q", title="error relative to a value (root mean square)")
        .scale(type="log", domain=upright, nice=False)
        .axis(values=log_ticks(*upright), format=",~r")
    )
    plane = alt.Chart().encode(x=x, y=y)
    rows = _points(curves)
    drawn = {row["series"] for row in rows}
    names, colours, dashes = zip(
        *(series for series in SERIES.values() if series[0] in drawn), strict=True
    )
    legend = alt.Legend(title=None, orient="top", symbolType="stroke", labelLimit=220)
    lines = (
        plane.properties(data=alt.InlineData(values=rows))
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            color=alt.Color("series:N", legend=legend).scale(
                domain=names, range=colours
            ),
            strokeDash=alt.StrokeDash("series:N", legend=legend).scale(
                domain=names, range=dashes
            ),
            tooltip=[
                "series:N",
                alt.Tooltip("x:Q", title="tokens", format=",.3~r"),
                alt.Tooltip("y:Q", title="error", format=".3~r"),
            ],
        )
    )
    here = alt.InlineData(values=[{"x": plan.n, "y": plan.eps}])
    point = plane.properties(data=here).mark_point(
        filled=True, fill=LIGHT.ink, stroke=LIGHT.card, size=90, opacity=1
    )
    return alt.LayerChart(
        layer=[*_phases(plane, curves, across), lines, point]
    ).properties(width=560, height=340)


def _points(curves: PlanCurves) -> list[dict[str, Any]]:
    return [
        {"series": label, "x": float(n), "y": float(error)}
        for name, (label, _, _) in SERIES.items()
        for n, error in zip(curves.n, getattr(curves, name), strict=True)
        if math.isfinite(error)
    ]


def _phases(
    plane: alt.Chart, curves: PlanCurves, across: tuple[float, float]
) -> list[alt.Chart]:
    """Shade the lengths of each phase: frozen, then heavy-tailed, then linear."""
    if curves.edges is None:
        return []
    low, high = across
    cuts = [low, *(min(max(edge, low), high) for edge in curves.edges), high]
    colours = {
        Phase.FROZEN: LIGHT.frozen,
        Phase.HEAVY_TAILED: LIGHT.heavy_tailed,
        Phase.LINEAR: LIGHT.linear,
    }
    layers = []
    for (phase, colour), (left, right) in zip(
        colours.items(), itertools.pairwise(cuts), strict=True
    ):
        if right > left:
            middle = math.sqrt(left * right)
            band = {"phase": phase.value, "x": left, "to": right, "middle": middle}
            here = plane.properties(data=alt.InlineData(values=[band]))
            layers += [
                here.mark_rect(opacity=0.16, color=colour).encode(
                    x2="to:Q", y=alt.value(0), y2=alt.value("height")
                ),
                here.mark_text(
                    baseline="bottom", dy=-6, fontSize=12, fontWeight=600, color=colour
                ).encode(x="middle:Q", y=alt.value("height"), text="phase:N"),
            ]
    return layers
