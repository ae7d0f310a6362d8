"""What a comparison found, in words, and in what the two audits differ."""

import dataclasses
from collections.abc import Mapping
from typing import Any, final

from largeprompt.audit.comparison import Comparison
from largeprompt.laws import Phase
from largeprompt.report.numbers import count, percent, show

IGNORED = ("model.source", "text.sha256")
TOO_LONG = 60  # characters


@final
@dataclasses.dataclass(frozen=True)
class ChangeSummary:
    """Sentences about a comparison, and how many heads went from phase to phase.

    `moves` has a row for each phase of A: its name and the number of heads in each
    phase of B.
    """

    headline: tuple[str, ...]
    findings: tuple[str, ...]
    moves: tuple[tuple[str, tuple[int, ...]], ...]
    most_changed: tuple[str, ...]


def summarise_change(comparison: Comparison) -> ChangeSummary:
    """Put a comparison into words; every number in them is computed from its table."""
    summary = comparison.summary
    heads = summary["heads"]
    headline = (
        f"At {count(summary['n'], 'token')}, {summary['moved']:,} of {count(heads)} "
        f"{'is' if summary['moved'] == 1 else 'are'} in another phase in B than in A, "
        f"and {summary['changed']:,} have another verdict.",
        _of_the_variance(summary),
    )
    moves = {(move["a"], move["b"]): move["heads"] for move in summary["moves"]}
    phases = [phase.value for phase in Phase]
    return ChangeSummary(
        headline=headline,
        findings=_findings(summary),
        moves=tuple((a, tuple(moves.get((a, b), 0) for b in phases)) for a in phases),
        most_changed=tuple(
            f"Layer {head['layer']}, head {head['head']}: "
            f"{times(head['logit_variance_change'])}"
            for head in summary["most_changed"]
            if head["logit_variance_change"] is not None
        ),
    )


def _of_the_variance(summary: Mapping[str, Any]) -> str:
    change = summary["median_changes"]["logit_variance"]
    if change is None:
        return "No head has a logit variance in both."
    return (
        f"The median head has {times(change)} the logit variance it had; in "
        f"{count(summary['apart'])} the change is beyond the spread over queries."
    )


def _findings(summary: Mapping[str, Any]) -> tuple[str, ...]:
    target = f"ε\u00a0=\u00a0{percent(summary['eps'])}"
    kept = summary["within_eps"]["linear_error_kept"]
    plain = summary["within_eps"]["linear_error_in_sample"]
    changes = summary["median_changes"]
    said = [
        f"With sinks and recent tokens kept exact, the linear limit is within {target} "
        f"in {count(kept['a'])} of A and {kept['b']:,} of B: {kept['came']:,} came, "
        f"{kept['went']:,} went.",
        f"As it stands, in {plain['a']:,} of A and {plain['b']:,} of B.",
    ]
    if changes["ess"] is not None:
        said.append(
            f"In the median the weights are worth {times(changes['ess'])} the tokens."
        )
    if changes["sink_share"] is not None:
        said.append(
            "The first four tokens have "
            f"{100 * changes['sink_share']:+.1f} percentage points of weight in the "
            "median head."
        )
    return tuple(said)


def times(doublings: float) -> str:
    """Return a number of doublings as a factor in words."""
    return f"{show(2.0**doublings)} times"


def told_differences(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return what differs between the two audits: its name, in A, in B."""
    found = []
    for name, (a, b) in comparison.manifest["differences"].items():
        if name not in IGNORED:
            found.append(
                (name.replace("_", " ").replace(".", ": "), _text(a), _text(b))
            )
    return found


def _text(value: Any) -> str:
    if value is None:
        return "–"
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= TOO_LONG else f"{text[: TOO_LONG - 1]}…"
