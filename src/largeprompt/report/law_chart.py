"""What the exact law says of every head, and what was measured."""

from collections.abc import Sequence

import altair as alt

from largeprompt.report.head_map import Width
from largeprompt.report.metrics import Metric
from largeprompt.report.palette import Palette
from largeprompt.report.records import Record
from largeprompt.report.scatter import scatter

PREDICTED = Metric("limit_error_law", "held-out error by the exact law", "log")
MEASURED = Metric("limit_error_held_out", "held-out error, measured", "log")
PHASE = Metric("phase", "Phase", "ordinal")


def law_chart(rows: Sequence[Record], palette: Palette, width: Width) -> alt.LayerChart:
    """Draw the measured error of the linear limit against the predicted one."""
    return scatter(rows, PREDICTED, MEASURED, PHASE, palette, width)
