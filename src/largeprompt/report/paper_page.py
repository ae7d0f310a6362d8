"""The page of a reproduction: verdicts and figures in one file that opens offline."""

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from largeprompt.experiments.verdicts import Finding, Verdict
from largeprompt.report.provenance import provenance
from largeprompt.report.templates import template


def paper_page(
    findings: Sequence[Finding],
    figures: Mapping[str, bytes],
    manifest: Mapping[str, Any],
) -> str:
    """Return a reproduction as HTML that asks for nothing from anywhere.

    It holds no script; the figures are pictures inside it.

    Args:
        findings: The parts.
        figures: The SVG of each part's figure, by the part's name.
        manifest: What it was made with.
    """
    verdicts = Counter(claim.verdict for part in findings for claim in part.claims)
    return template("paper.html.j2").render(
        paper=manifest["paper"],
        verdicts={verdict: verdicts[verdict] for verdict in Verdict},
        findings=findings,
        pictures={name: _data_url(svg) for name, svg in figures.items()},
        provenance=provenance(manifest),
    )


def _data_url(svg: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
