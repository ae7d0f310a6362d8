"""The page of an evaluation of compression: one file that opens offline."""

import datetime
from typing import Any

from largeprompt.hf.evaluation_result import CompressionResult
from largeprompt.report.compression_charts import curves, layer_curves
from largeprompt.report.compression_words import findings
from largeprompt.report.numbers import count
from largeprompt.report.provenance import provenance
from largeprompt.report.templates import template

METRICS = {
    "mean_error": "mean relative error of head outputs",
    "kl": "KL divergence of the next token (nats)",
}
COLUMNS = {
    "mean_error": "head error",
    "late_error": "later",
    "kl": "KL",
    "top1": "top-1",
    "nll": "NLL",
    "accuracy": "accuracy",
    "mebibytes": "MiB",
    "ms_per_token": "ms/token",
    "build_s": "build s",
    "prefill_peak_mebibytes": "prefill peak MiB",
}


def compression_page(result: CompressionResult) -> str:
    """Return an evaluation as HTML that asks for nothing from anywhere.

    It holds no script. Names of models and texts are shown, never obeyed.
    """
    manifest = result.manifest
    texts = list(dict.fromkeys(row["text"] for row in result.summary))
    return template("compression.html.j2").render(
        title=manifest["model"]["name"],
        byline=_byline(manifest),
        findings=findings(result.summary),
        texts=[_section(result, text) for text in texts],
        columns=COLUMNS,
        passkeys=result.passkeys,
        definitions=manifest["definitions"],
        provenance=provenance(manifest),
    )


def _section(result: CompressionResult, text: str) -> dict[str, Any]:
    """Return what the page shows of one text."""
    rows = [row for row in result.summary if row["text"] == text]
    heads = [row for row in result.errors.to_pylist() if row["text"] == text]
    least = min((row["budget"] for row in heads), default=1.0)
    compressed = [row for row in rows if row["method"] != "exact"]
    return {
        "name": text,
        "rows": [_told(row) for row in rows],
        "charts": [
            (title, chart)
            for metric, title in METRICS.items()
            if (chart := curves(compressed, metric)) is not None
        ],
        "least": least,
        "layers": layer_curves([row for row in heads if row["budget"] == least]),
    }


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its bytes in MiB."""
    peak = row.get("prefill_peak_bytes")
    return {
        **row,
        "mebibytes": row["bytes"] / 2**20,
        "prefill_peak_mebibytes": None if peak is None else peak / 2**20,
    }


def _byline(manifest: dict[str, Any]) -> list[str]:
    asked = manifest["arguments"]
    created = datetime.datetime.fromisoformat(manifest["created"])
    return [
        f"{count(asked['prompt_tokens'], 'token')} compressed",
        f"{count(asked['continuation'], 'token')} of continuation",
        f"{created.day} {created:%B %Y, %H:%M %Z}",
        f"largeprompt {manifest['versions']['largeprompt']}",
    ]
