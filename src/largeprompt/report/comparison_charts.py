"""The charts of a comparison: maps of changes, points A against B, curves of both."""

from collections.abc import Sequence
from typing import Literal

import altair as alt

from largeprompt.report.comparison_metrics import CHANGES, MOVE, TITLES
from largeprompt.report.curves import DASHED, DOTTED, SOLID, curves, joined
from largeprompt.report.head_map import Width, head_map
from largeprompt.report.metrics import METRICS, Metric
from largeprompt.report.palette import Palette
from largeprompt.report.records import Record
from largeprompt.report.scatter import scatter

Quantity = Literal["logit_variance", "ess", "linear_error_kept"]

AXES = {
    "logit_variance": "logit variance s²",
    "ess": "effective sample size (tokens)",
    "linear_error_kept": "error relative to the output",
}
KINDS = {metric.column: metric.kind for metric in METRICS}


def change_maps(
    rows: Sequence[Record], palette: Palette, width: Width
) -> dict[str, alt.LayerChart]:
    """Return a map of heads for each change."""
    return {m.column: head_map(m, rows, palette, width) for m in CHANGES}


def change_points(
    rows: Sequence[Record], palette: Palette, width: Width
) -> dict[str, alt.LayerChart]:
    """Return, for each change, every head as a point: audit A along, B upwards."""
    found = {}
    for metric in CHANGES:
        column = metric.column.removesuffix("_change")
        if column == "move":
            column = "logit_variance"
        kind = "log" if KINDS.get(column, "log") == "log" else "linear"
        a, b = (
            Metric(f"{column}_{which}", f"{TITLES[column]}, {which.upper()}", kind)
            for which in ("a", "b")
        )
        found[metric.column] = scatter(rows, a, b, MOVE, palette, width)
    return found


def both_curves(
    rows: Sequence[Record], column: Quantity, palette: Palette, width: Width
) -> alt.LayerChart:
    """Draw a column of the chosen head against the length, in both audits."""
    series = {
        "A": (f"{column}_a", palette.muted, DASHED),
        "B": (f"{column}_b", palette.in_sample, SOLID),
    }
    if column == "ess":
        series["all tokens alike, B"] = ("effective_n_b", palette.muted, DOTTED)
    return joined(curves(rows, series, AXES[column], include=1.0), rows, width)
