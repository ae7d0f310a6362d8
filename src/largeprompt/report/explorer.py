"""What pages on the heads of a model share: charts, table and choice of a head."""

import base64
import importlib.resources
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import markupsafe
import vl_convert

from largeprompt.report.palette import PAGE, VEGA_LITE, dressed
from largeprompt.report.profile_charts import profile_charts
from largeprompt.report.profile_data import Curve, pooled, token_lists
from largeprompt.report.records import Record, at_length, lengths, typical

DIGITS = 5  # of the numbers that a page shows with three


def payload(
    rows: Sequence[Record],
    charts: Mapping[str, alt.LayerChart],
    switched: Mapping[str, Mapping[str, alt.LayerChart]],
    curves: Sequence[Curve] = (),
) -> dict[str, Any]:
    """Return what the page's script reads.

    The table that all charts draw from travels once, beside their specifications.

    Args:
        rows: The records of all heads, rounded.
        charts: The charts by the names of their places.
        switched: Those with one chart a metric.
        curves: The curves of the heads, where there are any.
    """
    start = typical(at_length(rows, max(lengths(rows))))
    profiles = profile_charts(curves, PAGE, "container")
    return {
        "start": {name: start[name] for name in ("layer", "head", "n")},
        "heads": {name: [row[name] for row in rows] for name in rows[0]},
        "charts": {
            name: dressed(chart, PAGE) for name, chart in {**charts, **profiles}.items()
        },
        "switched": {
            name: {metric: dressed(chart, PAGE) for metric, chart in each.items()}
            for name, each in switched.items()
        },
        "profiles": list(profiles),
        "curves": pooled(curves),
        "tokens": token_lists(curves),
    }


def rounded(rows: Sequence[Record]) -> list[Record]:
    """Return records with numbers to the digits that a page can show.

    All of a page is made from them: what it writes at first and what its script writes
    later are the same.
    """
    return [
        {
            name: float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def packed(found: Mapping[str, Any]) -> str:
    """Return a payload as text a page can hold, a few times smaller than its JSON.

    JSON, compressed (RFC 1950), in base 64: every browser since 2023 unpacks it.
    """
    plain = json.dumps(found, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(plain.encode(), 9)).decode()


def unpacked(text: str) -> dict[str, Any]:
    """Return the payload that was packed."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def script() -> markupsafe.Markup:
    """Return the page's script with the one chart runtime it uses bundled in."""
    assets = importlib.resources.files("largeprompt.report") / "assets"
    source = (assets / "report.js").read_text(encoding="utf-8")
    bundle = vl_convert.javascript_bundle(source, vl_version=VEGA_LITE)
    return markupsafe.Markup(bundle.replace("</script", r"<\/script"))
