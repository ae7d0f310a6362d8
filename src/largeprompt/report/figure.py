"""Figures of an audit as files, from the charts of the report."""

import enum
from collections.abc import Sequence
from pathlib import Path

import altair as alt

from largeprompt.audit import AuditResult
from largeprompt.report.files import write_whole
from largeprompt.report.head_map import head_map
from largeprompt.report.metrics import METRICS
from largeprompt.report.numbers import count
from largeprompt.report.palette import LIGHT, dressed
from largeprompt.report.phase_map import phase_map
from largeprompt.report.records import Record, records
from largeprompt.report.rendering import rendered


class Figure(enum.StrEnum):
    """The figures of an audit that stand on their own."""

    HEAD_MAP = "head-map"
    PHASE_MAP = "phase-map"


TITLES = {
    Figure.HEAD_MAP: "Logit variance of every head",
    Figure.PHASE_MAP: "Every head, by prompt length and logit variance",
}


def write_figure(result: AuditResult, kind: Figure | str, path: Path | str) -> None:
    """Write one figure of an audit at its longest length, on white paper.

    Args:
        result: The audit.
        kind: The map of heads (by logit variance), or the phase map.
        path: Where to; the suffix `.png`, `.svg`, `.pdf` or `.html` says as what.

    Raises:
        ValueError: An unknown kind or suffix.
    """
    path = Path(path)
    rows = records(result)
    spec = dressed(_chart(Figure(kind), rows), LIGHT)
    spec["datasets"] = {**spec.get("datasets", {}), "heads": rows}
    for parameter in spec["params"]:
        if parameter["name"] != "chosen_n":
            parameter["value"] = None  # no head is chosen on paper
    model, text = result.manifest["model"]["name"], result.manifest["text"]["name"]
    longest = count(max(result.manifest["arguments"]["lengths"]), "token")
    title, subtitle = TITLES[Figure(kind)], f"{model} on {text}, {longest}"
    write_whole(path, rendered(spec, title, subtitle, path.suffix))


def _chart(figure: Figure, rows: Sequence[Record]) -> alt.LayerChart:
    match figure:
        case Figure.HEAD_MAP:
            return head_map(METRICS[0], rows, LIGHT, width=640)
        case Figure.PHASE_MAP:
            return phase_map(rows, LIGHT, width=640)
