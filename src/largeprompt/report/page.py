"""The report of an audit: one HTML file that needs nothing but itself."""

import importlib.resources
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import markupsafe
import vl_convert

from largeprompt.audit import AuditResult
from largeprompt.report.curves import error_curves, ess_curve
from largeprompt.report.files import write_whole
from largeprompt.report.head_map import head_map
from largeprompt.report.metrics import METRICS
from largeprompt.report.palette import (
    PAGE,
    VEGA_LITE,
    dressed,
)
from largeprompt.report.phase_map import phase_map
from largeprompt.report.provenance import byline, provenance
from largeprompt.report.records import Record, at_length, lengths, records, typical
from largeprompt.report.table import CARD, TABLE, TEXTS
from largeprompt.report.templates import template
from largeprompt.report.words import summarise


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
    return template("report.html.j2").render(
        title=result.manifest["model"]["name"],
        byline=byline(result.manifest),
        definitions=result.manifest["definitions"],
        provenance=provenance(result.manifest),
        summary=summarise(result, rows),
        rows=longest,
        start=typical(longest),
        lengths=lengths(rows),
        metrics=METRICS,
        table=TABLE,
        texts=TEXTS,
        card=CARD,
        payload={
            "heads": {name: [row[name] for row in rows] for name in rows[0]},
            "charts": _charts(rows, result.manifest["arguments"]["eps"]),
        },
        script=_script(),
    )


def _charts(rows: Sequence[Record], eps: float) -> dict[str, Any]:
    """Return the specifications; the table they draw from travels once, beside them."""
    charts = {
        "ess": ess_curve(rows, PAGE, "container"),
        "errors": error_curves(rows, PAGE, "container", eps),
        "phases": phase_map(rows, PAGE, "container"),
    }
    maps = {m.column: head_map(m, rows, PAGE, "container") for m in METRICS}
    return {
        **{name: dressed(chart, PAGE) for name, chart in charts.items()},
        "maps": {name: dressed(chart, PAGE) for name, chart in maps.items()},
    }


def _script() -> markupsafe.Markup:
    """Return the page's script with the one chart runtime it uses bundled in."""
    assets = importlib.resources.files("largeprompt.report") / "assets"
    source = (assets / "report.js").read_text(encoding="utf-8")
    bundle = vl_convert.javascript_bundle(source, vl_version=VEGA_LITE)
    return markupsafe.Markup(bundle.replace("</script", r"<\/script"))
