"""Charts of an evaluation of compression: pictures in the page's colours."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import markupsafe
import vl_convert

from largeprompt.report.metrics import log_ticks
from largeprompt.report.palette import PAGE, VEGA_LITE, dressed

Row = dict[str, Any]
SOLID, DASHED, DOTTED = [1, 0], [6, 4], [2, 3]
# one look for each method wherever it is drawn; what is not listed is drawn muted
LOOKS = {
    "calibrated": (PAGE.kept, SOLID),
    "snapkv": (PAGE.in_sample, SOLID),
    "moments": (PAGE.held_out, SOLID),
    "centroids": (PAGE.heavy_tailed, SOLID),
    "tova": (PAGE.in_sample, DASHED),
    "expected-attention": (PAGE.frozen, SOLID),
    "plain-moments": (PAGE.held_out, DASHED),
    "segments": (PAGE.heavy_tailed, DASHED),
    "performer": (PAGE.linear, DASHED),
    "nystrom": (PAGE.linear, DOTTED),
    "sinks-window": (PAGE.muted, SOLID),
}
OTHER = (PAGE.muted, DOTTED)


def curves(rows: Sequence[Row], metric: str) -> markupsafe.Markup | None:
    """Draw a metric against the budget, a line for each method; None without values."""
    shown = [row for row in rows if row[metric] is not None and row[metric] > 0]
    if not shown:
        return None
    budgets = sorted({row["budget"] for row in shown})
    x = alt.X("budget:Q", title="share of the cache's bytes").scale(
        type="log", domain=[budgets[0] / 1.15, budgets[-1] * 1.15], nice=False
    )
    return _drawn(
        shown,
        x.axis(values=budgets, format=".3~p", grid=False),
        _logarithmic([row[metric] for row in shown], metric),
        width=290,
    )


def layer_curves(rows: Sequence[Row]) -> markupsafe.Markup | None:
    """Draw the mean error of each layer's heads, a line for each method."""
    sums: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        sums.setdefault((row["method"], row["layer"]), []).append(row["error"])
    shown = [
        {"method": method, "layer": layer, "error": sum(errors) / len(errors)}
        for (method, layer), errors in sums.items()
        if sum(errors) > 0
    ]
    if not shown:
        return None
    layers = sorted({row["layer"] for row in shown})
    x = alt.X("layer:Q", title="layer").axis(values=layers, format="d", grid=False)
    y = _logarithmic([row["error"] for row in shown], "error")
    return _drawn(shown, x, y, width=780)


def _logarithmic(values: list[float], field: str) -> alt.Y:
    ends = min(values) / 1.2, max(values) * 1.2
    return (
        alt.Y(f"{field}:Q", title=None)  # the caption says it
        .scale(type="log", domain=ends, nice=False)
        .axis(values=log_ticks(*ends), format=",~r")
    )


def _drawn(rows: list[Row], x: alt.X, y: alt.Y, width: int) -> markupsafe.Markup:
    """Draw lines and points with a legend, as an SVG element of the page."""
    present = {row["method"] for row in rows}
    names = [name for name in LOOKS if name in present]
    names += sorted(present.difference(names))
    looks = [LOOKS.get(name, OTHER) for name in names]
    legend = alt.Legend(
        title=None, orient="right", symbolType="stroke", labelLimit=220, rowPadding=4
    )
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=x,
        y=y,
        color=alt.Color("method:N", legend=legend).scale(
            domain=names, range=[colour for colour, _ in looks]
        ),
        strokeDash=alt.StrokeDash("method:N", legend=legend).scale(
            domain=names, range=[dash for _, dash in looks]
        ),
    )
    lines = base.mark_line(strokeWidth=2)
    points = base.mark_point(filled=True, opacity=1, size=36).encode(
        strokeDash=alt.value(SOLID)
    )
    chart = alt.LayerChart(layer=[lines, points]).properties(width=width, height=260)
    svg = vl_convert.vegalite_to_svg(dressed(chart, PAGE), vl_version=VEGA_LITE)
    return markupsafe.Markup(svg)
