"""The figures of a reproduction of the paper: one chart for each part."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import altair as alt

from largeprompt.experiments.verdicts import Finding
from largeprompt.report.metrics import log_ticks
from largeprompt.report.palette import LIGHT
from largeprompt.report.rendering import rendered

Row: TypeAlias = dict[str, Any]

QUANTITIES = {
    "output": LIGHT.in_sample,
    "U gradient": LIGHT.held_out,
    "V gradient": LIGHT.kept,
}
DASHES = {"solid": [1, 0], "dashed": [6, 4], "dotted": [1, 3]}
LONGEST_DRAWN = 1000  # tokens, in the figure of training
WIDTH, HEIGHT = 720, 380  # of a figure of one panel


def paper_figure(finding: Finding, suffix: str, *, note: bool = True) -> bytes:
    """Return the figure of a part as the content of a file.

    Args:
        finding: The part.
        suffix: `.svg`, `.png`, `.pdf` or `.html`.
        note: Whether the figure says what it shows; not where a page does.

    Raises:
        ValueError: Another suffix.
    """
    chart = CHARTS[finding.name](finding.table.to_pylist())
    subtitle = finding.note if note else ""
    return rendered(chart.to_dict(), finding.title, subtitle, suffix)


def limit_chart(rows: Sequence[Row]) -> alt.LayerChart:
    """Return the mean output against the query, a curve for each prompt."""
    names = list(dict.fromkeys(row["tokens"] for row in rows))
    lengths, limits = names[:-2], names[-2:]
    plane = _plane(rows).encode(
        x=alt.X("query:Q", title="query"), y=alt.Y("output:Q", title="mean output")
    )
    line = alt.Legend(title=None, orient="right", symbolType="stroke", labelLimit=200)
    finite = plane.transform_filter(alt.FieldOneOfPredicate("tokens", lengths))
    ends = plane.transform_filter(alt.FieldOneOfPredicate("tokens", limits))
    return alt.LayerChart(
        layer=[
            finite.mark_line(strokeWidth=1.8).encode(
                color=alt.Color("tokens:N", legend=line, sort=lengths).scale(
                    domain=lengths, scheme="viridis"
                )
            ),
            ends.mark_line(strokeWidth=2, color=LIGHT.ink).encode(
                strokeDash=alt.StrokeDash("tokens:N", legend=line).scale(
                    domain=limits, range=[DASHES["solid"], DASHES["dashed"]]
                )
            ),
        ]
    ).properties(width=WIDTH, height=HEIGHT)


def concentration_chart(rows: Sequence[Row]) -> alt.ConcatChart:
    """Return mean square errors against the length, a panel for each token law."""
    ends = _ends([row[k] for row in rows for k in ("mean_square", "exact") if row[k]])
    y_axis = alt.Axis(values=log_ticks(*ends), format=".0e")
    panels = []
    for law in dict.fromkeys(row["law"] for row in rows):
        plane = _plane([row for row in rows if row["law"] == law]).encode(
            x=_log_x("n", "prompt length (tokens)", [row["n"] for row in rows]),
            color=alt.Color(
                "quantity:N",
                legend=alt.Legend(title=None, orient="bottom", symbolType="stroke"),
            ).scale(domain=list(QUANTITIES), range=list(QUANTITIES.values())),
        )
        y = {"scale": alt.Scale(type="log", domain=ends, nice=False), "axis": y_axis}
        layers = [
            plane.transform_filter("isValid(datum.exact)")
            .mark_line(strokeWidth=1.5, strokeDash=DASHES["dashed"])
            .encode(y=alt.Y("exact:Q", title="mean square error", **y)),
            plane.mark_point(filled=True, size=40, opacity=1).encode(
                y=alt.Y("mean_square:Q", title="mean square error", **y)
            ),
        ]
        panel = alt.LayerChart(layer=layers)
        panels.append(panel.properties(width=270, height=270, title=law))
    return alt.ConcatChart(concat=panels, columns=3)


def stability_chart(rows: Sequence[Row]) -> alt.LayerChart:
    """Return distances to the limit flow and their envelopes against time."""
    later = [row for row in rows if row["t"] > 0]
    ends = _ends([row[k] for row in later for k in ("distance", "envelope")])
    names = {"distance": "solid", "envelope": "dashed"}
    legend = alt.Legend(title=None, orient="right", symbolType="stroke")
    chart = (
        _plane(later)
        .transform_fold(list(names), as_=["line", "value"])
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("t:Q", title="training time"),
            y=alt.Y("value:Q", title="distance of the parameters")
            .scale(type="log", domain=ends, nice=False)
            .axis(values=log_ticks(*ends), format="~g"),
            color=_by_length(later),
            strokeDash=alt.StrokeDash("line:N", legend=legend).scale(
                domain=list(names), range=[DASHES[dash] for dash in names.values()]
            ),
        )
    )
    return alt.LayerChart(layer=[chart]).properties(width=WIDTH, height=HEIGHT)


def endpoint_chart(rows: Sequence[Row]) -> alt.LayerChart:
    """Return the risk of the limit against time, a line for each start."""
    seen = [row for row in rows if row["t"] > 0 and row["risk"] > 1e-14]
    ends = _ends([row["risk"] for row in seen])
    legend = alt.Legend(title="start", orient="right", symbolType="stroke")
    chart = (
        _plane(seen)
        .mark_line(strokeWidth=2)
        .encode(
            x=_log_x("t", "training time", [row["t"] for row in seen]),
            y=alt.Y("risk:Q", title="risk R(A, b)")
            .scale(type="log", domain=ends, nice=False)
            .axis(values=log_ticks(*ends), format=".0e"),
            color=alt.Color("start:N", legend=legend, sort=None).scale(
                range=list(QUANTITIES.values())
            ),
        )
    )
    return alt.LayerChart(layer=[chart]).properties(width=WIDTH, height=HEIGHT)


def training_chart(rows: Sequence[Row]) -> alt.ConcatChart:
    """Return the training curves: a panel for each attention and covariance."""
    drawn = [row for row in rows if row["t"] > 0 and row["n"] <= LONGEST_DRAWN]
    ends = _ends([row["risk"] for row in drawn])
    panels = []
    for covariance in dict.fromkeys(row["covariance"] for row in drawn):
        for attention in dict.fromkeys(row["attention"] for row in drawn):
            here = [
                row
                for row in drawn
                if (row["covariance"], row["attention"]) == (covariance, attention)
            ]
            curves = _plane([row for row in here if not row["sampled"]])
            dots = _plane([row for row in here if row["sampled"]])
            times = [row["t"] for row in drawn]
            x = _log_x("t", "training time (steps times step size)", times)
            y = (
                alt.Y("risk:Q", title="risk")
                .scale(type="log", domain=ends, nice=False)
                .axis(values=log_ticks(*ends), format="~g")
            )
            place = {"x": x, "y": y}
            panel = alt.LayerChart(
                layer=[
                    curves.mark_line(strokeWidth=1.4).encode(
                        color=_by_length(drawn), **place
                    ),
                    dots.mark_point(
                        filled=True, size=50, opacity=1, stroke=LIGHT.ink
                    ).encode(color=_by_length(drawn), **place),
                ]
            )
            title = f"{attention}, {covariance} covariance"
            panels.append(panel.properties(width=400, height=320, title=title))
    return alt.ConcatChart(concat=panels, columns=2)


CHARTS: Mapping[str, Callable[[Sequence[Row]], alt.LayerChart | alt.ConcatChart]] = (
    MappingProxyType(
        {
            "limit": limit_chart,
            "concentration": concentration_chart,
            "stability": stability_chart,
            "endpoint": endpoint_chart,
            "training": training_chart,
        }
    )
)


def _plane(rows: Sequence[Row]) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=list(rows)))


def _by_length(rows: Sequence[Row]) -> alt.Color:
    lengths = sorted({row["n"] for row in rows})
    scale: Literal["viridis"] = "viridis"
    return alt.Color(
        "n:Q",
        legend=alt.Legend(title="tokens", orient="right", format=",d"),
    ).scale(type="log", scheme=scale, domain=[lengths[0], lengths[-1]], reverse=True)


def _log_x(field: str, title: str, values: Sequence[float]) -> alt.X:
    ends = _ends(values)
    return (
        alt.X(f"{field}:Q", title=title)
        .scale(type="log", domain=ends, nice=False)
        .axis(values=log_ticks(*ends), format="~g", grid=False)
    )


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis with a little room."""
    return min(values) / 1.15, max(values) * 1.15
