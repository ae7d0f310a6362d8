"""An audit in a notebook: its summary and its first heads as a table."""

import html
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

SHOWN = 12  # heads
COLUMNS = (
    "text",
    "layer",
    "head",
    "n",
    "logit_variance",
    "ess",
    "linear_error_in_sample",
    "linear_error_kept",
    "limit_error_held_out",
    "limit_error_law",
    "phase",
    "failed_assumption",
)


def as_html(heads: pa.Table, manifest: dict[str, Any], summary: dict[str, Any]) -> str:
    """Return a caption and a table of the first heads at the longest length.

    Args:
        heads: The table of an audit.
        manifest: Its manifest.
        summary: Its summary.
    """
    longest = [row for row in heads.to_pylist() if row["n"] == summary["n"]]
    phases = ", ".join(f"{count} {name}" for name, count in summary["phases"].items())
    title = f"{manifest['model']['name']} on {manifest['text']['name']}"
    caption = f"{title}, {summary['n']:,} tokens: {summary['heads']:,} heads ({phases})"
    head = _line("th", COLUMNS)
    body = "".join(
        _line("td", [_cell(row[name]) for name in COLUMNS]) for row in longest[:SHOWN]
    )
    rest = len(longest) - SHOWN
    more = f"<p>and {rest:,} more heads; see .details</p>" if rest > 0 else ""
    return (
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead>{head}</thead><tbody>{body}</tbody></table>{more}"
    )


def _line(tag: str, cells: Sequence[str]) -> str:
    inside = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inside}</tr>"


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
