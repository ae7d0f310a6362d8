"""Figures of an audit as files, from the charts of the report, with their data."""

import enum
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import pyarrow as pa
import pyarrow.csv

from largeprompt.audit import AuditResult
from largeprompt.audit.files import write_whole
from largeprompt.report.head_map import head_map
from largeprompt.report.law_chart import law_chart
from largeprompt.report.metrics import METRICS
from largeprompt.report.numbers import count
from largeprompt.report.palette import LIGHT, chart_config, dressed
from largeprompt.report.phase_map import phase_map
from largeprompt.report.records import Record, at_length, lengths, records
from largeprompt.report.rendering import rendered
from largeprompt.report.shares import linear_shares, share_curve

WIDTH = 640  # pixels


class Figure(enum.StrEnum):
    """The figures of an audit that stand on their own."""

    HEAD_MAP = "head-map"
    PHASE_MAP = "phase-map"
    LINEAR_HEADS = "linear-heads"
    LAW = "law"


TITLES = {
    Figure.HEAD_MAP: "Logit variance of every head",
    Figure.PHASE_MAP: "Every head, by prompt length and logit variance",
    Figure.LINEAR_HEADS: "How many heads are linear, by prompt length",
    Figure.LAW: "Error of the linear limit, predicted and measured",
}

COLUMNS = {
    Figure.HEAD_MAP: ("layer", "head", "n", "logit_variance"),
    Figure.PHASE_MAP: ("layer", "head", "n", "effective_n", "logit_variance", "phase"),
    Figure.LAW: (
        "layer",
        "head",
        "n",
        "limit_error_law",
        "limit_error_held_out",
        "phase",
    ),
}
"""The columns of the audit that a figure draws."""


def write_figure(result: AuditResult, kind: Figure | str, path: Path | str) -> None:
    """Write one figure of an audit at its longest length, on white paper.

    Args:
        result: The audit.
        kind: The map of heads (by logit variance), the phase map, the share of linear
            heads by length, or the law's prediction beside what was measured.
        path: Where to; the suffix `.png`, `.svg`, `.pdf` or `.html` says as what, and
            `.csv` writes the numbers that are drawn.

    Raises:
        ValueError: An unknown kind or suffix.
    """
    path, figure = Path(path), Figure(kind)
    if path.suffix == ".csv":
        write_whole(path, as_csv(figure_data(result, figure)))
        return
    rows = records(result)
    spec = dressed(_chart(result, figure, rows), LIGHT)
    spec["datasets"] = {**spec.get("datasets", {}), "heads": rows}
    spec["params"] = without_choice(spec["params"])
    model, text = result.manifest["model"]["name"], result.manifest["text"]["name"]
    longest = count(max(result.manifest["arguments"]["lengths"]), "token")
    title, subtitle = TITLES[figure], f"{model} on {text}, {longest}"
    write_whole(path, rendered(spec, title, subtitle, path.suffix))


def figure_data(result: AuditResult, kind: Figure | str) -> pa.Table:
    """Return the numbers that a figure draws, a row a point.

    Raises:
        ValueError: An unknown kind.
    """
    figure, rows = Figure(kind), records(result)
    match figure:
        case Figure.LINEAR_HEADS:
            points = linear_shares(rows, result.manifest["arguments"]["eps"])
        case Figure.PHASE_MAP:
            points = rows
        case _:
            points = at_length(rows, max(lengths(rows)))
    names = COLUMNS.get(figure, tuple(points[0]))
    return pa.table({name: [point[name] for point in points] for name in names})


def figure_chart(result: AuditResult, kind: Figure | str) -> alt.LayerChart:
    """Return a figure of an audit as an Altair chart, which a notebook shows.

    Raises:
        ValueError: An unknown kind.
    """
    rows = records(result)
    chart = _chart(result, Figure(kind), rows)
    spec = chart.to_dict()
    spec["datasets"] = {**spec.get("datasets", {}), "heads": rows}
    spec["params"] = without_choice(spec["params"])
    spec["config"] = {**chart_config(LIGHT), "background": LIGHT.card}
    return alt.LayerChart.from_dict(spec)


def without_choice(parameters: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a chart's parameters with no head chosen, as on paper."""
    chosen = ("chosen_layer", "chosen_head")
    return [
        {**parameter, "value": None} if parameter["name"] in chosen else parameter
        for parameter in parameters
    ]


def as_csv(table: pa.Table) -> bytes:
    """Return a table as comma-separated values, which every plotting program reads."""
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue()


def _chart(
    result: AuditResult, figure: Figure, rows: Sequence[Record]
) -> alt.LayerChart:
    match figure:
        case Figure.HEAD_MAP:
            return head_map(METRICS[0], rows, LIGHT, WIDTH)
        case Figure.PHASE_MAP:
            return phase_map(rows, LIGHT, WIDTH)
        case Figure.LINEAR_HEADS:
            eps = result.manifest["arguments"]["eps"]
            return share_curve(rows, LIGHT, WIDTH, eps)
        case Figure.LAW:
            return law_chart(rows, LIGHT, WIDTH)
