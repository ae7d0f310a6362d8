"""The curves of the chosen head against the length: measured, and by the exact law."""

from collections.abc import Mapping, Sequence

import altair as alt

from largeprompt.report.head_map import CHOSEN_HEAD, HEADS, Width, choice
from largeprompt.report.metrics import log_ticks
from largeprompt.report.palette import Palette
from largeprompt.report.records import Record, lengths, present

SOLID, DASHED, DOTTED = [1, 0], [6, 4], [1, 3]


def ess_curve(rows: Sequence[Record], palette: Palette, width: Width) -> alt.LayerChart:
    """Draw how many tokens the weights are worth, beside the exact law.

    The dotted line is a head that weighs every token alike.
    """
    series = {
        "measured": ("ess", palette.held_out, SOLID),
        "exact law": ("ess_law", palette.held_out, DASHED),
        "all tokens alike": ("effective_n", palette.muted, DOTTED),
    }
    lines = curves(rows, series, "effective sample size (tokens)", include=1.0)
    return joined(lines, rows, width)


def error_curves(
    rows: Sequence[Record], palette: Palette, width: Width, eps: float
) -> alt.LayerChart:
    """Draw the errors of the linear limit relative to the head's output.

    The dotted rule is the error aimed at.
    """
    series = {
        "in sample": ("linear_error_in_sample", palette.in_sample, SOLID),
        "sinks and recent kept": ("linear_error_kept", palette.kept, SOLID),
        "held out": ("limit_error_held_out", palette.held_out, SOLID),
        "held out, exact law": ("limit_error_law", palette.held_out, DASHED),
    }
    target = alt.Chart(alt.InlineData(values=[{"eps": eps}])).encode(y="eps:Q")
    rule = target.mark_rule(color=palette.muted, strokeDash=DOTTED)
    text = target.mark_text(
        color=palette.muted, align="right", baseline="bottom", dx=-2, dy=-3
    ).encode(x=alt.value("width"), text=alt.value(f"ε = {eps:g}"))
    lines = curves(rows, series, "error relative to the output", include=eps)
    return joined([rule, text, *lines], rows, width)


def curves(
    rows: Sequence[Record],
    series: Mapping[str, tuple[str, str, list[int]]],
    title: str,
    include: float,
) -> list[alt.Chart]:
    """Draw series of the chosen head; the axes are the same for every head.

    Args:
        rows: The records of all heads.
        series: From the name of a series to its column, colour and dashes.
        title: What the numbers are.
        include: A value that the axis upwards reaches.
    """
    columns = [column for column, _, _ in series.values()]
    values = [v for column in columns for v in present(rows, column) if v > 0]
    ends = min([include, *values]) / 1.2, max([include, *values]) * 1.2
    asked = lengths(rows)
    names = list(series)
    colours = [colour for _, colour, _ in series.values()]
    dashes = [dash for _, _, dash in series.values()]
    legend = alt.Legend(
        title=None, orient="top", columns=2, symbolType="stroke", labelLimit=220
    )
    lines = (
        alt.Chart(HEADS)
        .transform_filter(CHOSEN_HEAD)
        .transform_calculate(
            **{name: f"datum.{column}" for name, (column, _, _) in series.items()}
        )
        .transform_fold([*names], as_=["series", "value"])
        .transform_filter("isValid(datum.value) && datum.value > 0")
        .encode(
            x=alt.X("n:Q", title="prompt length (tokens)")
            .scale(type="log", domain=[asked[0] / 1.15, asked[-1] * 1.15], nice=False)
            .axis(values=asked, format=",d", grid=False, labelOverlap=True),
            y=alt.Y("value:Q", title=title)
            .scale(type="log", domain=ends, nice=False)
            .axis(values=log_ticks(*ends), format=",~r"),
            color=alt.Color("series:N", legend=legend).scale(
                domain=names, range=colours
            ),
            strokeDash=alt.StrokeDash("series:N", legend=legend).scale(
                domain=names, range=dashes
            ),
            tooltip=["series:N", "n:Q", alt.Tooltip("value:Q", format=".3~r")],
        )
    )
    solid = [name for name, (_, _, dash) in series.items() if dash == SOLID]
    points = lines.transform_filter(alt.FieldOneOfPredicate("series", solid))
    return [lines.mark_line(strokeWidth=2), points.mark_point(filled=True, opacity=1)]


def joined(
    layers: Sequence[alt.Chart], rows: Sequence[Record], width: Width
) -> alt.LayerChart:
    """Return layers as a chart that knows which head is chosen."""
    chart = alt.LayerChart(layer=list(layers))
    return chart.add_params(*choice(rows)).properties(width=width, height=260)
