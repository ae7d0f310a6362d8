r"""The headline of an audit over several texts: its mean, and how sure that is."""

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from scipy import stats

from largeprompt.audit.intervals import LEVEL
from largeprompt.audit.outlook import linear_error

Rows = Sequence[dict[str, Any]]

MEDIANS = (
    "logit_variance",
    "ess",
    "sink_share",
    "linear_error_in_sample",
    "linear_error_kept",
    "limit_error_held_out",
    "limit_error_law",
)


def over_texts(rows: Rows, eps: float) -> dict[str, dict[str, float]] | None:
    r"""Return the headline statistics over texts; None for a single text.

    Each is computed text by text at the longest length; then for $m$ texts of mean $a$
    and standard deviation $s$ the limits are $a \pm t\, s / \sqrt m$ with $t$ the
    quantile of Student's law of $m - 1$ degrees of freedom (Student (1908)
    [student:08]). They hold at 95% for texts drawn independently from those that one
    has in mind, if the statistic is about normal over texts.

    Args:
        rows: The table of an audit.
        eps: The relative error up to which a head is linear.

    Returns:
        From a statistic to `texts` (how many), `mean`, the limits `low` and `high`, and
        `least` and `most` over the texts. The statistics: `linear_share` and
        `kept_share`, shares of the heads within eps as they stand, or with sinks and
        recent tokens kept exact; and medians over heads of columns.
    """
    longest = max(row["n"] for row in rows)
    texts: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["n"] == longest:
            texts.setdefault(row["text"], []).append(row)
    if len(texts) < 2:
        return None
    found = {
        "linear_share": _shares(texts, lambda row: linear_error(row) <= eps),
        "kept_share": _shares(texts, lambda row: row["linear_error_kept"] <= eps),
    }
    for name in MEDIANS:
        found[name] = [
            statistics.median(row[name] for row in mine) for mine in texts.values()
        ]
    return {name: _interval(values) for name, values in found.items()}


def _shares(
    texts: dict[str, list[dict[str, Any]]], holds: Callable[[dict[str, Any]], bool]
) -> list[float]:
    return [sum(holds(row) for row in mine) / len(mine) for mine in texts.values()]


def _interval(values: Sequence[float]) -> dict[str, float]:
    count, mean = len(values), statistics.fmean(values)
    quantile = float(stats.t.ppf((1 + LEVEL) / 2, count - 1))
    reach = quantile * statistics.stdev(values) / math.sqrt(count)
    return {
        "texts": count,
        "mean": mean,
        "low": mean - reach,
        "high": mean + reach,
        "least": min(values),
        "most": max(values),
    }
