"""The figure of a concentration experiment: errors against the prompt length."""

import statistics
from collections.abc import Sequence
from typing import Any, TypeAlias

import altair as alt

from largeprompt.experiments import ConcentrationResult
from largeprompt.report.metrics import log_ticks
from largeprompt.report.palette import LIGHT
from largeprompt.report.rendering import rendered

Row: TypeAlias = dict[str, Any]

COLOURS = {
    "output": LIGHT.in_sample,
    "U gradient": LIGHT.held_out,
    "V gradient": LIGHT.kept,
}
LINES = {"exact law": [6, 4], "proven bound": [1, 3], "long-run rate": [2, 6]}
COLUMNS = 3  # panels side by side


def concentration_figure(result: ConcentrationResult, suffix: str) -> bytes:
    """Return the figure as the content of a file.

    Args:
        result: The experiment.
        suffix: `.svg`, `.png`, `.pdf` or `.html`.

    Raises:
        ValueError: Another suffix.
    """
    arguments = result.manifest["arguments"]
    return rendered(
        concentration_chart(result).to_dict(),
        "How finite prompts concentrate around their limit",
        f"mean square errors over {arguments['seeds']} seeds: a point is their "
        "geometric mean, a bar their range",
        suffix,
    )


def concentration_chart(result: ConcentrationResult) -> alt.ConcatChart:
    """Return one panel for each token law, all on the same axes.

    A panel shows what was measured, its slopes, the exact law where it is known, what
    is proven, and the long-run rate through the error at the longest length.
    """
    rows = _rows(result)
    lengths = sorted({row["n"] for row in rows})
    seen = [row[end] for row in rows for end in ("least", "most")]
    exact = [row["exact law"] for row in rows if row["exact law"]]
    ends = min(seen + exact) / 1.5, 4 * max(seen + exact)
    laws = list(dict.fromkeys(row["law"] for row in rows))
    panels = [
        _panel(
            [row for row in rows if row["law"] == law],
            alt.Title(
                law,
                subtitle=_slopes(result, law),
                subtitleColor=LIGHT.muted,
                fontSize=12,
            ),
            lengths,
            ends,
        )
        for law in laws
    ]
    return alt.ConcatChart(concat=panels, columns=COLUMNS)


def _panel(
    rows: Sequence[Row],
    title: alt.Title,
    lengths: Sequence[int],
    ends: tuple[float, float],
) -> alt.LayerChart:
    margin = 1.15
    x = (
        alt.X("n:Q", title="prompt length (tokens)")
        .scale(
            type="log", domain=[lengths[0] / margin, lengths[-1] * margin], nice=False
        )
        .axis(values=lengths, format=",d", grid=False, labelOverlap=True)
    )
    scale = alt.Scale(type="log", domain=ends, nice=False)
    axis = alt.Axis(values=log_ticks(*ends), format=".0e", title="mean square error")
    legend = alt.Legend(title=None, orient="bottom", symbolType="stroke")
    plane = alt.Chart(alt.InlineData(values=list(rows))).encode(
        x=x,
        color=alt.Color("quantity:N", legend=legend).scale(
            domain=list(COLOURS), range=list(COLOURS.values())
        ),
    )
    dash = alt.StrokeDash("line:N", legend=legend).scale(
        domain=list(LINES), range=list(LINES.values())
    )
    lines = (
        plane.transform_fold(list(LINES), as_=["line", "value"])
        .transform_filter("isValid(datum.value)")
        .mark_line(strokeWidth=1.5, clip=True)
        .encode(y=alt.Y("value:Q", scale=scale, axis=axis), strokeDash=dash)
    )
    bars = plane.mark_rule(strokeWidth=1.5).encode(
        y=alt.Y("least:Q", scale=scale, axis=axis), y2="most:Q"
    )
    points = plane.mark_point(filled=True, size=40, opacity=1).encode(
        y=alt.Y("measured:Q", scale=scale, axis=axis),
        tooltip=[
            "quantity:N",
            "n:Q",
            alt.Tooltip("measured:Q", format=".3~r"),
            alt.Tooltip("exact law:Q", format=".3~r"),
            alt.Tooltip("proven bound:Q", format=".3~r"),
        ],
    )
    return alt.LayerChart(layer=[lines, bars, points]).properties(
        width=300, height=300, title=title
    )


def _rows(result: ConcentrationResult) -> list[Row]:
    """Gather the seeds of a law, quantity and length in one row."""
    rates = {(slope.law, slope.quantity): slope.asymptotic for slope in result.slopes}
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in result.table.to_pylist():
        key = row["law"], row["quantity"], row["n"]
        groups.setdefault(key, []).append(row)
    measured = {
        key: statistics.geometric_mean([row["mean_square"] for row in group])
        for key, group in groups.items()
    }
    longest = max(n for _, _, n in groups)
    rows = []
    for (law, quantity, n), group in groups.items():
        rate = rates[law, quantity]
        end = measured[law, quantity, longest]
        rows.append(
            {
                "law": law,
                "quantity": quantity,
                "n": n,
                "measured": measured[law, quantity, n],
                "least": min(row["mean_square"] for row in group),
                "most": max(row["mean_square"] for row in group),
                "exact law": _geometric([row["exact"] for row in group]),
                "proven bound": _geometric([row["bound"] for row in group]),
                "long-run rate": (
                    None if rate is None else end * (n / longest) ** rate
                ),
            }
        )
    return rows


def _geometric(values: Sequence[float | None]) -> float | None:
    """Return the geometric mean, None where a value is missing."""
    present = [value for value in values if value is not None]
    if len(present) < len(values):
        return None
    return statistics.geometric_mean(present)


def _slopes(result: ConcentrationResult, law: str) -> str:
    told = [
        f"{slope.quantity} {slope.slope:.3f}"
        for slope in result.slopes
        if slope.law == law
    ]
    return "slopes: " + ", ".join(told)
