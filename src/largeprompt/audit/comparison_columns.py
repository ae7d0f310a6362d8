"""The columns of a comparison of two audits: each head beside itself."""

import math
from typing import Any, TypeAlias

import pyarrow as pa

from largeprompt.audit.columns import COLUMNS
from largeprompt.laws import Phase

Row: TypeAlias = dict[str, Any]

RATIOS = (
    "logit_variance",
    "ess",
    "linear_error_in_sample",
    "linear_error_kept",
    "limit_error_held_out",
    "limit_error_law",
    "output_rms",
    "tokens_needed",
)
"""Positive columns, whose change is a number of doublings."""

DIFFERENCES = ("entropy", "max_weight", "sink_share", "logit_kurtosis")
"""Columns whose change is what is added."""

BOTH = ("phase", "failed_assumption", "verdict", "effective_n")
"""Columns that are shown for both audits and have no change."""

CALMER, SAME, SHARPER = "towards linear", "same phase", "towards frozen"
ORDER = [phase.value for phase in Phase]

_MEANINGS = {column.name: column for column in COLUMNS}


def _columns() -> list[tuple[str, pa.DataType, bool, str]]:
    """Return name, type, whether it may be null, and definition of each column."""
    places = ("layer", "head", "n")
    found = [("text", pa.string(), False, "Text read; a → b where the two differ.")]
    found += [
        (name, _MEANINGS[name].type, False, _MEANINGS[name].definition)
        for name in places
    ]
    found += [
        (
            "move",
            pa.string(),
            False,
            f"{CALMER}, {SAME} or {SHARPER}, from phase_a to phase_b.",
        ),
        (
            "changed",
            pa.bool_(),
            False,
            "Whether the phase or the failed assumption is another one.",
        ),
        (
            "apart",
            pa.bool_(),
            False,
            "Whether the 10% to 90% ranges of the logit variance over queries have "
            "nothing in common.",
        ),
    ]
    for name in (*BOTH, *RATIOS, *DIFFERENCES):
        column = _MEANINGS[name]
        for which in ("a", "b"):
            told = f"In audit {which}: {column.definition}"
            found.append((f"{name}_{which}", column.type, column.nullable, told))
    for name in RATIOS:
        told = f"log2({name}_b / {name}_a): doublings; null unless both are positive."
        found.append((f"{name}_change", pa.float64(), True, told))
    for name in DIFFERENCES:
        told = f"{name}_b - {name}_a; null where one of them is."
        found.append((f"{name}_change", pa.float64(), True, told))
    return found


COMPARISON_SCHEMA = pa.schema(
    [pa.field(name, type_, nullable) for name, type_, nullable, _ in _columns()]
)
DEFINITIONS = {name: told for name, _, _, told in _columns()}


def compared_row(text: str, a: Row, b: Row) -> Row:
    """Return one head of two audits as a row of the comparison.

    Args:
        text: What the pair of texts is called.
        a: The head's row in the first audit.
        b: Its row in the second, at the same layer, head and length.
    """
    step = ORDER.index(b["phase"]) - ORDER.index(a["phase"])
    row: Row = {
        "text": text,
        **{name: b[name] for name in ("layer", "head", "n")},
        "move": SAME if step == 0 else CALMER if step < 0 else SHARPER,
        "changed": step != 0 or a["failed_assumption"] != b["failed_assumption"],
        "apart": max(a["logit_variance_low"], b["logit_variance_low"])
        > min(a["logit_variance_high"], b["logit_variance_high"]),
    }
    for name in (*BOTH, *RATIOS, *DIFFERENCES):
        row[f"{name}_a"], row[f"{name}_b"] = a[name], b[name]
    for name in RATIOS:
        row[f"{name}_change"] = _doublings(a[name], b[name])
    for name in DIFFERENCES:
        row[f"{name}_change"] = _added(a[name], b[name])
    return row


def _doublings(a: float | None, b: float | None) -> float | None:
    if a is None or b is None or not (0 < a < math.inf and 0 < b < math.inf):
        return None
    return math.log2(b) - math.log2(a)


def _added(a: float | None, b: float | None) -> float | None:
    if a is None or b is None or not (math.isfinite(a) and math.isfinite(b)):
        return None
    return b - a
