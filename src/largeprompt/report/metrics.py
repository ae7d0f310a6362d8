"""What the map of heads can show: a column of the audit, its name and its scale."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, final

import altair as alt

from largeprompt.laws import Phase
from largeprompt.report.palette import Palette
from largeprompt.report.records import Record, present

DIVERGING = ("#1f6fb4", "#7fa9cf", "#b4b5b1", "#dc9a5f", "#c75000")
"""Less, the same, more: told apart by the colour-blind, and seen on white and black."""


def phase_scale(palette: Palette) -> alt.Scale:
    """Return the three colours of the phases."""
    return alt.Scale(
        domain=[phase.value for phase in Phase],
        range=[palette.linear, palette.heavy_tailed, palette.frozen],
    )


@final
@dataclasses.dataclass(frozen=True)
class Metric:
    """A column with its title and its scale.

    `kind` is the Vega-Lite scale: `log` for positive numbers over orders of magnitude,
    `linear`, `symlog` where zero and negative numbers occur, `ordinal` for names, whose
    colours `named` gives, `diverging` for changes, of which zero is the middle.
    """

    column: str
    title: str
    kind: Literal["log", "linear", "symlog", "ordinal", "diverging"]
    scheme: Literal["viridis", "cividis"] = "viridis"
    named: Callable[[Palette], alt.Scale] = phase_scale


METRICS = (
    Metric("logit_variance", "Logit variance s²", "log"),
    Metric("phase", "Phase", "ordinal"),
    Metric("linear_error_in_sample", "Error of the linear limit, in sample", "log"),
    Metric("linear_error_kept", "Same, sinks and recent tokens exact", "log"),
    Metric("limit_error_held_out", "Error of the linear limit, held out", "log"),
    Metric("limit_error_law", "Held-out error by the exact law", "log"),
    Metric("ess", "Effective sample size", "log", "cividis"),
    Metric("entropy", "Entropy of the weights (nats)", "linear", "cividis"),
    Metric("max_weight", "Largest weight", "linear", "cividis"),
    Metric("sink_share", "Weight on the first four tokens", "linear", "cividis"),
    Metric("logit_kurtosis", "Excess kurtosis of the logits", "symlog", "cividis"),
    Metric("tokens_needed", "Tokens needed", "log", "cividis"),
    Metric("logit_variance_without_sinks", "Logit variance, no sinks", "log"),
    Metric("phase_without_sinks", "Phase, no sinks", "ordinal"),
    Metric("limit_error_held_out_without_sinks", "Error held out, no sinks", "log"),
    Metric("left_out_share", "Weight on all sinks", "linear", "cividis"),
    Metric("key_mean_share", "Share of the mean key", "linear", "cividis"),
    Metric("key_kurtosis", "Excess kurtosis of the keys", "symlog", "cividis"),
)


def colour(metric: Metric, rows: Sequence[Record], palette: Palette) -> alt.Color:
    """Return the colour of a metric, on one scale for all lengths.

    Sequential, ordered by lightness and safe for the colour-blind; a scale that changed
    with the length would hide what the length changes.
    """
    legend = {"title": None, "orient": "top", "direction": "horizontal"}
    if metric.kind == "ordinal":
        return alt.Color(
            f"{metric.column}:N",
            scale=metric.named(palette),
            legend=alt.Legend(**legend),
        )
    values = [v for v in present(rows, metric.column) if v > 0 or metric.kind != "log"]
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    if metric.kind == "diverging":
        return _diverging(metric, max(abs(low), abs(high)), legend)
    ticks = {"log": log_ticks, "symlog": symlog_ticks}.get(metric.kind)
    if ticks:
        legend["values"] = ticks(low, high)
    legend |= {"gradientLength": 320, "format": "~s" if high > 1e6 else ",~r"}
    return alt.Color(
        f"{metric.column}:Q",
        scale=alt.Scale(type=metric.kind, domain=[low, high], scheme=metric.scheme),
        legend=alt.Legend(**legend),
    )


def _diverging(metric: Metric, far: float, legend: dict[str, Any]) -> alt.Color:
    """Return colours around zero, as far one way as the other."""
    far = float(f"{far:.2g}") or 1.0
    ends = [-far, -far / 2, 0.0, far / 2, far]
    return alt.Color(
        f"{metric.column}:Q",
        scale=alt.Scale(
            domain=ends, range=list(DIVERGING), interpolate="rgb", clamp=True
        ),
        legend=alt.Legend(**legend, gradientLength=320, format=".2~r", values=ends),
    )


def drawable(metric: Metric) -> str:
    """Return the Vega expression that tells which records a metric's scale shows."""
    valid = f"isValid(datum.{metric.column})"
    return f"{valid} && datum.{metric.column} > 0" if metric.kind == "log" else valid


def log_ticks(low: float, high: float) -> list[float]:
    """Return ticks of a logarithmic scale: 1, 2, 5 of few decades, 1 of many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = range(first, last + 1, math.ceil((last - first + 1) / 7))
    steps = (1, 2, 5) if high < 1000 * low else (1,)
    ticks = (step * 10.0**decade for decade in decades for step in steps)
    return [tick for tick in ticks if low <= tick <= high]


def symlog_ticks(low: float, high: float) -> list[float]:
    """Return ticks of a scale that is logarithmic away from zero on both sides."""
    sizes = [10.0**decade for decade in range(7)]
    ticks = [*(-size for size in reversed(sizes)), 0.0, *sizes]
    return [tick for tick in ticks if low <= tick <= high]
