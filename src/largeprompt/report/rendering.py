"""Charts as files of any kind: a picture, or a page that opens offline."""

import json
from collections.abc import Mapping
from typing import Any

import vl_convert

from largeprompt.report.palette import LIGHT, VEGA_LITE, chart_config

MARK = "\ue000"  # of private use: stands for < until the page is made


def rendered(chart: Mapping[str, Any], title: str, subtitle: str, suffix: str) -> bytes:
    """Return a chart as the content of a file, on white paper.

    Args:
        chart: The specification of a chart in Vega-Lite.
        title: Its title.
        subtitle: The line below the title.
        suffix: `.svg`, `.png`, `.pdf`, or `.html` for a page with the chart's runtime.

    Raises:
        ValueError: Another suffix.
    """
    spec = {
        **chart,
        "title": {
            "text": title,
            "subtitle": subtitle,
            "anchor": "start",
            "subtitleColor": LIGHT.muted,
            "offset": 12,
        },
        "config": chart_config(LIGHT),
        "background": LIGHT.card,
        "padding": 12,
    }
    match suffix:
        case ".svg":
            return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE).encode()
        case ".png":
            return vl_convert.vegalite_to_png(spec, vl_version=VEGA_LITE, scale=2)
        case ".pdf":
            return vl_convert.vegalite_to_pdf(spec, vl_version=VEGA_LITE)
        case ".html":
            return _page(spec).encode()
    raise ValueError(
        f"a figure must be a .svg, .png, .pdf or .html file; got {suffix!r}"
    )


def _page(spec: Mapping[str, Any]) -> str:
    """Return a page in which no text of the chart can end the script that holds it."""
    marked = json.loads(json.dumps(spec, ensure_ascii=False).replace("<", MARK))
    page = vl_convert.vegalite_to_html(marked, vl_version=VEGA_LITE, bundle=True)
    return page.replace(MARK, r"\u003c")
