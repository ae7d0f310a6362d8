"""The report of an audit: one HTML file that needs nothing but itself."""

from collections.abc import Sequence
from pathlib import Path

import altair as alt

from largeprompt.audit import AuditResult
from largeprompt.audit.profiles import PROFILES
from largeprompt.report.curves import error_curves, ess_curve
from largeprompt.report.explorer import payload, script
from largeprompt.report.files import write_whole
from largeprompt.report.head_map import head_map
from largeprompt.report.law_chart import law_chart
from largeprompt.report.metrics import METRICS
from largeprompt.report.palette import PAGE
from largeprompt.report.phase_map import phase_map
from largeprompt.report.profile_data import curves_of
from largeprompt.report.provenance import byline, provenance
from largeprompt.report.records import (
    Record,
    at_length,
    lengths,
    records,
    typical,
)
from largeprompt.report.shares import share_curve
from largeprompt.report.table import CARD, TABLE, TEXTS
from largeprompt.report.templates import template
from largeprompt.report.words import of_the_law, summarise

CHOICES = {"phase": "Phase", "failed_assumption": "What fails"}
"""The columns that the table is filtered by, each with its title."""


def write_report(result: AuditResult, path: Path | str) -> None:
    """Write an audit as one HTML file that opens offline.

    It asks for nothing from anywhere, and its content security policy forbids it to.
    Summary, table and definitions read without JavaScript. The file appears whole or
    not at all, and replaces one that is there.
    """
    write_whole(Path(path), render_page(result).encode())


def render_page(result: AuditResult) -> str:
    """Return the report of an audit as HTML.

    Names of models and texts are data: whatever they hold is shown, never obeyed.
    """
    rows = records(result)
    longest = at_length(rows, max(lengths(rows)))
    curves = curves_of(result.profiles)
    maps = {m.column: head_map(m, rows, PAGE, "container") for m in METRICS}
    charts = _charts(rows, result.manifest["arguments"]["eps"])
    found = payload(rows, charts, {"map": maps}, curves)
    return template("report.html.j2").render(
        kind="Attention audit",
        title=result.manifest["model"]["name"],
        byline=byline(result.manifest),
        definitions=result.manifest["definitions"],
        provenance=provenance(result.manifest),
        summary=summarise(result, rows),
        law_note=of_the_law(longest),
        rows=longest,
        start=typical(longest),
        lengths=lengths(rows),
        metrics=METRICS,
        table=TABLE,
        texts=TEXTS,
        choices=CHOICES,
        bounded="logit_variance",
        card=CARD,
        profiles=[p for p in PROFILES if p.name in found["profiles"]],
        payload=found,
        script=script(),
    )


def _charts(rows: Sequence[Record], eps: float) -> dict[str, alt.LayerChart]:
    return {
        "ess": ess_curve(rows, PAGE, "container"),
        "errors": error_curves(rows, PAGE, "container", eps),
        "phases": phase_map(rows, PAGE, "container"),
        "shares": share_curve(rows, PAGE, "container", eps),
        "law": law_chart(rows, PAGE, "container"),
    }
