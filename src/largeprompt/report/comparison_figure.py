"""Figures of a comparison as files: the map of changes, and A against B."""

from typing import Literal

import pyarrow as pa

from largeprompt.audit.comparison import Comparison
from largeprompt.report.comparison_charts import change_maps, change_points
from largeprompt.report.comparison_page import audit_named, comparison_records
from largeprompt.report.figure import WIDTH, as_csv, without_choice
from largeprompt.report.numbers import count
from largeprompt.report.palette import LIGHT, dressed
from largeprompt.report.records import at_length, lengths
from largeprompt.report.rendering import rendered

Kind = Literal["change-map", "change"]

TITLES: dict[Kind, str] = {
    "change-map": "Doublings of the logit variance of every head",
    "change": "Logit variance of every head, before and after",
}
METRIC = "logit_variance_change"
COLUMNS = ("layer", "head", "n", "logit_variance_a", "logit_variance_b", METRIC, "move")


def comparison_figure(comparison: Comparison, kind: Kind, suffix: str) -> bytes:
    """Return one figure of a comparison on one text as the content of a file.

    Args:
        comparison: The comparison.
        kind: The map of the heads' changes, or a point a head, A along and B upwards.
        suffix: `.svg`, `.png`, `.pdf`, `.html`, or `.csv` for the numbers drawn.

    Raises:
        ValueError: An unknown suffix.
    """
    rows = comparison_records(comparison)
    longest = max(lengths(rows))
    if suffix == ".csv":
        points = at_length(rows, longest)
        return as_csv(pa.table({name: [p[name] for p in points] for name in COLUMNS}))
    charts = change_maps if kind == "change-map" else change_points
    spec = dressed(charts(rows, LIGHT, WIDTH)[METRIC], LIGHT)
    spec["datasets"] = {**spec.get("datasets", {}), "heads": rows}
    spec["params"] = without_choice(spec["params"])
    a, b = (audit_named(comparison.manifest[which]) for which in "ab")
    subtitle = f"A: {a}; B: {b}; {count(longest, 'token')}"
    return rendered(spec, TITLES[kind], subtitle, suffix)
