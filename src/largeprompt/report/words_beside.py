"""In words: the heads without their sinks, and the headline over several texts."""

import statistics
from collections.abc import Sequence

from largeprompt.audit import AuditResult
from largeprompt.report.numbers import count, percent, show
from largeprompt.report.records import Record, present


def without_sinks(longest: Sequence[Record], target: str) -> tuple[str, ...]:
    """Say what the heads are without their sinks; nothing where that is not known."""
    known = [
        row for row in longest if row["failed_assumption_without_sinks"] is not None
    ]
    if not known:
        return ()
    left_out, share = (
        statistics.median(present(known, name)) for name in ("sinks", "left_out_share")
    )
    linear = sum(not row["failed_assumption_without_sinks"] for row in known)
    return (
        f"Without their sinks, {show(left_out)} tokens with {percent(share)} of the "
        f"weight in the median, the heads that are linear to within {target} would be "
        f"{linear:,} of {count(len(known))}.",
    )


def texts_in_words(whole: AuditResult, target: str) -> tuple[str, ...]:
    """Say how much the headline varies over texts; nothing for a single text."""
    found = whole.summary["over_texts"]
    if found is None:
        return ()
    linear, kept, variance = (
        found[name] for name in ("linear_share", "kept_share", "logit_variance")
    )
    low, high = (percent(min(1.0, max(0.0, kept[end]))) for end in ("low", "high"))
    return (
        f"Over {linear['texts']} texts the share of heads within {target} is "
        f"{percent(linear['mean'])} as they stand ({percent(linear['least'])} to "
        f"{percent(linear['most'])}) and {percent(kept['mean'])} with sinks and recent "
        f"tokens exact ({percent(kept['least'])} to {percent(kept['most'])}; 95% "
        f"interval of its mean over such texts {low} to {high}); the median logit "
        f"variance is {show(variance['mean'])} ({show(variance['least'])} to "
        f"{show(variance['most'])}).",
    )
