"""The report of an audit: one HTML file that needs nothing but itself."""

from collections.abc import Sequence
from pathlib import Path

import altair as alt

from largeprompt.audit import AuditResult
from largeprompt.audit.files import write_whole
from largeprompt.audit.profiles import PROFILES, TOKEN_LISTS
from largeprompt.report.curves import error_curves, ess_curve
from largeprompt.report.explorer import packed, payload, rounded, script
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
    has,
    lengths,
    records,
    typical,
)
from largeprompt.report.shares import share_curve
from largeprompt.report.table import BESIDE, CARD, TABLE, TEXTS
from largeprompt.report.templates import template
from largeprompt.report.words import of_the_law, summarise

CHOICES = {"phase": "Phase", "failed_assumption": "What fails"}
"""The columns that the table is filtered by, each with its title."""


def write_report(
    result: AuditResult, path: Path | str, whole: AuditResult | None = None
) -> None:
    """Write an audit as one HTML file that opens offline.

    It asks for nothing from anywhere, and its content security policy forbids it to.
    Summary, table and definitions read without JavaScript. The file appears whole or
    not at all, and replaces one that is there.

    Args:
        result: The audit on one text.
        path: Where to.
        whole: The audit on all texts that this is one of, whose spread is told.
    """
    write_whole(Path(path), render_page(result, whole).encode())


def render_page(result: AuditResult, whole: AuditResult | None = None) -> str:
    """Return the report of an audit as HTML.

    Names of models and texts are data: whatever they hold is shown, never obeyed.

    Args:
        result: The audit on one text.
        whole: The audit on all texts that this is one of, whose spread is told.
    """
    rows = rounded(records(result))
    longest = at_length(rows, max(lengths(rows)))
    curves = curves_of(result.profiles)
    metrics = [metric for metric in METRICS if has(rows, metric.column)]
    maps = {m.column: head_map(m, rows, PAGE, "container") for m in metrics}
    charts = _charts(rows, result.manifest["arguments"]["eps"])
    found = payload(rows, charts, {"map": maps}, curves)
    kinds = {curve["profile"] for curve in curves}
    return template("report.html.j2").render(
        kind="Attention audit",
        title=result.manifest["model"]["name"],
        byline=byline(result.manifest),
        definitions=result.manifest["definitions"],
        provenance=provenance(result.manifest),
        summary=summarise(result, rows, whole),
        law_note=of_the_law(longest),
        rows=longest,
        start=typical(longest),
        lengths=lengths(rows),
        metrics=metrics,
        table=TABLE,
        texts=TEXTS,
        choices=CHOICES,
        bounded="logit_variance",
        card=CARD,
        beside=BESIDE if has(rows, "phase_without_sinks") else {},
        tokens=[kind for kind in TOKEN_LISTS if kind.name in kinds],
        profiles=[p for p in PROFILES if p.name in found["profiles"]],
        payload=packed(found),
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
