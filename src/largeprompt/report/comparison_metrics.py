"""What the map of a comparison can show, and what its card and table hold."""

import altair as alt

from largeprompt.audit.comparison_columns import CALMER, SAME, SHARPER
from largeprompt.report.metrics import Metric
from largeprompt.report.palette import Palette
from largeprompt.report.table import Fields

TITLES: Fields = {
    "logit_variance": "Logit variance s²",
    "ess": "Effective sample size",
    "linear_error_in_sample": "Error of the linear limit, in sample",
    "linear_error_kept": "Same, sinks and recent tokens exact",
    "limit_error_held_out": "Error of the linear limit, held out",
    "tokens_needed": "Tokens needed",
    "output_rms": "Size of the output",
    "entropy": "Entropy of the weights (nats)",
    "max_weight": "Largest weight",
    "sink_share": "Weight on the first four tokens",
    "logit_kurtosis": "Excess kurtosis of the logits",
}
"""The columns of an audit that are shown for both, and their change."""

DOUBLINGS = tuple(TITLES)[:7]
"""Those whose change is a number of doublings; the others' is what is added."""


def move_scale(palette: Palette) -> alt.Scale:
    """Return the colours of a head that came closer to its limit, stayed, or left."""
    return _moves(palette, palette.void)


def point_scale(palette: Palette) -> alt.Scale:
    """Return the same colours for points, which are smaller than cells."""
    return _moves(palette, palette.muted)


def _moves(palette: Palette, same: str) -> alt.Scale:
    colours = [palette.in_sample, same, palette.held_out]
    return alt.Scale(domain=[CALMER, SAME, SHARPER], range=colours)


def _changed(column: str) -> Metric:
    unit = "doublings" if column in DOUBLINGS else "added"
    return Metric(f"{column}_change", f"{TITLES[column]}: {unit}", "diverging")


CHANGES = (
    _changed("logit_variance"),
    Metric("move", "Phase: which way", "ordinal", named=move_scale),
    *(_changed(column) for column in tuple(TITLES)[1:]),
)

MOVE = Metric("move", "Phase: which way", "ordinal", named=point_scale)

TABLE: Fields = {
    "layer": "Layer",
    "head": "Head",
    "phase_a": "Phase, A",
    "phase_b": "Phase, B",
    "logit_variance_a": "Logit variance, A",
    "logit_variance_b": "Logit variance, B",
    "logit_variance_change": "Doublings",
    "linear_error_kept_a": "Error, kept, A",
    "linear_error_kept_b": "Error, kept, B",
    "ess_a": "ESS, A",
    "ess_b": "ESS, B",
    "sink_share_change": "First four, added",
    "failed_assumption_a": "What fails, A",
    "failed_assumption_b": "What fails, B",
}
TEXTS = frozenset({"phase_a", "phase_b", "failed_assumption_a", "failed_assumption_b"})
CHOICES = {"move": "Phase", "changed_word": "Verdict", "apart_word": "Logit variance"}
