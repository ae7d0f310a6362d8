"""What pages on the heads of a model share: charts, table and choice of a head."""

import importlib.resources
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import markupsafe
import vl_convert

from largeprompt.report.palette import PAGE, VEGA_LITE, dressed
from largeprompt.report.profile_charts import profile_charts
from largeprompt.report.profile_data import Curve, pooled
from largeprompt.report.records import Record, at_length, lengths, typical


def payload(
    rows: Sequence[Record],
    charts: Mapping[str, alt.LayerChart],
    switched: Mapping[str, Mapping[str, alt.LayerChart]],
    curves: Sequence[Curve] = (),
) -> dict[str, Any]:
    """Return what the page's script reads.

    The table that all charts draw from travels once, beside their specifications.

    Args:
        rows: The records of all heads.
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
    }


def script() -> markupsafe.Markup:
    """Return the page's script with the one chart runtime it uses bundled in."""
    assets = importlib.resources.files("largeprompt.report") / "assets"
    source = (assets / "report.js").read_text(encoding="utf-8")
    bundle = vl_convert.javascript_bundle(source, vl_version=VEGA_LITE)
    return markupsafe.Markup(bundle.replace("</script", r"<\/script"))
