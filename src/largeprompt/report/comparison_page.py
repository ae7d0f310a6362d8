"""The page of a comparison of two audits: one HTML file that needs nothing else."""

from typing import Any

from largeprompt.audit.comparison import Comparison
from largeprompt.audit.comparison_columns import DEFINITIONS
from largeprompt.laws import Phase
from largeprompt.report.comparison_charts import (
    both_curves,
    change_maps,
    change_points,
)
from largeprompt.report.comparison_metrics import (
    CHANGES,
    CHOICES,
    DOUBLINGS,
    TABLE,
    TEXTS,
    TITLES,
)
from largeprompt.report.comparison_words import summarise_change, told_differences
from largeprompt.report.explorer import packed, payload, rounded, script
from largeprompt.report.numbers import count
from largeprompt.report.palette import PAGE
from largeprompt.report.records import (
    Record,
    at_length,
    lengths,
    plain_records,
    typical,
)
from largeprompt.report.templates import template


def comparison_page(comparison: Comparison) -> str:
    """Return a comparison of two audits on one text as HTML.

    It asks for nothing from anywhere. Names of models and texts are shown, never
    obeyed.
    """
    rows = rounded(comparison_records(comparison))
    longest = at_length(rows, max(lengths(rows)))
    manifest = comparison.manifest
    charts = {
        "variance": both_curves(rows, "logit_variance", PAGE, "container"),
        "ess": both_curves(rows, "ess", PAGE, "container"),
        "errors": both_curves(rows, "linear_error_kept", PAGE, "container"),
    }
    switched = {
        "map": change_maps(rows, PAGE, "container"),
        "points": change_points(rows, PAGE, "container"),
    }
    return template("comparison.html.j2").render(
        kind="Comparison of two audits",
        title=" and ".join(audit_named(manifest[which]) for which in "ab"),
        names=[audit_named(manifest[which]) for which in "ab"],
        byline=_byline(comparison),
        definitions=DEFINITIONS,
        provenance=_provenance(manifest),
        summary=summarise_change(comparison),
        differences=told_differences(comparison),
        phases=[phase.value for phase in Phase],
        rows=longest,
        start=typical(longest),
        lengths=lengths(rows),
        metrics=CHANGES,
        table=TABLE,
        texts=TEXTS,
        choices=CHOICES,
        bounded="logit_variance_change",
        card=TITLES,
        doublings=DOUBLINGS,
        payload=packed(payload(rows, charts, switched)),
        script=script(),
    )


def comparison_records(comparison: Comparison) -> list[Record]:
    """Return one record per head and length, with B's phase and logit variance."""
    return [
        {
            **row,
            "phase": row["phase_b"],
            "logit_variance": row["logit_variance_b"],
            "changed_word": "changed" if row["changed"] else "as before",
            "apart_word": "beyond its spread" if row["apart"] else "within its spread",
        }
        for row in plain_records(comparison.heads)
    ]


def audit_named(entry: dict[str, Any]) -> str:
    """Return what an audit is of, in a few words."""
    texts = ", ".join(text["name"] for text in entry["texts"])
    return f"{entry['model']['name']} on {texts}"


def _byline(comparison: Comparison) -> list[str]:
    model, manifest = comparison.manifest["a"]["model"], comparison.manifest
    unpaired = sum(manifest["unpaired"].values())
    told = [
        f"{count(model['layers'], 'layer')} of {count(model['heads'])}",
        f"text {', '.join(comparison.texts)}",
        f"{count(manifest['pairs'], 'row')} compared",
    ]
    return told + [f"{count(unpaired, 'row')} in one audit only"] * (unpaired > 0)


def _provenance(manifest: dict[str, Any]) -> dict[str, list[str]]:
    """Return what each audit was, as lines of text."""
    found = {}
    for which in "ab":
        entry = manifest[which]
        found[f"audit {which.upper()}"] = [
            audit_named(entry),
            *(f"{name}: {value}" for name, value in entry["model"].items()),
            *(f"{name}: {value}" for name, value in entry["arguments"].items()),
            entry["created"],
            entry["machine"],
        ]
    return found
