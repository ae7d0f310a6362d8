"""The whole model in a few numbers: an audit's table at its longest length."""

import statistics
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from largeprompt.audit.outlook import outlook, policy
from largeprompt.audit.over_texts import over_texts

MEDIANS = (
    "logit_variance",
    "logit_kurtosis",
    "ess",
    "ess_law",
    "max_weight",
    "sink_share",
    "linear_error_in_sample",
    "linear_error_kept",
    "limit_error_held_out",
    "limit_error_law",
)
ERRORS = ("linear_error_in_sample", "linear_error_kept", "limit_error_held_out")


def overview(heads: pa.Table, eps: float, context: int | None = None) -> dict[str, Any]:
    """Return counts and medians over the heads at the longest length.

    Args:
        heads: The table of an audit.
        eps: The relative error up to which a head counts as linear.
        context: The most tokens the model reads, where that is known.

    Returns:
        `n`, `heads` (how many) and `eps`; `phases` and `failed_assumptions`, each from
        a name to a number of heads, most frequent first; `within_eps`, from a column
        of errors to the number of heads at most `eps` off; `medians`, from a column to
        its median over heads; `outlook` and `policy` (`audit.outlook`): how many heads
        are linear by length, and what a compression would do with them; `over_texts`
        (`audit.over_texts`): the headline over several texts, null for one.
    """
    everything = heads.to_pylist()
    longest = max(row["n"] for row in everything)
    rows = [row for row in everything if row["n"] == longest]
    return {
        "n": longest,
        "heads": len(rows),
        "eps": eps,
        "phases": _counts(row["phase"] for row in rows),
        "failed_assumptions": _counts(row["failed_assumption"] for row in rows),
        "within_eps": {name: sum(row[name] <= eps for row in rows) for name in ERRORS},
        "medians": {
            name: statistics.median(row[name] for row in rows) for name in MEDIANS
        },
        "outlook": outlook(everything, eps, context),
        "policy": policy(rows, eps),
        "over_texts": over_texts(everything, eps),
    }


def _counts(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())
