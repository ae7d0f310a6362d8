"""Results -> charts -> one HTML file that opens offline, and figures."""

from largeprompt.report.figure import Figure, write_figure
from largeprompt.report.page import render_page, write_report

__all__ = ["Figure", "render_page", "write_figure", "write_report"]
