"""Results -> charts -> one HTML file that opens offline, and figures."""

from largeprompt.report.comparison_page import comparison_page
from largeprompt.report.figure import (
    Figure,
    figure_chart,
    figure_data,
    write_figure,
)
from largeprompt.report.page import render_page, write_report

__all__ = [
    "Figure",
    "comparison_page",
    "figure_chart",
    "figure_data",
    "render_page",
    "write_figure",
    "write_report",
]
