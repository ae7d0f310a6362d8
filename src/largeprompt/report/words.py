"""The summary in words: what an audit found, what fails, what one can do."""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import final

from largeprompt.audit import AuditResult
from largeprompt.audit.outlook import in_words
from largeprompt.laws import Phase
from largeprompt.report.numbers import count, of_the_output, percent, show
from largeprompt.report.records import Record, at_length
from largeprompt.report.scatter import rank_correlation
from largeprompt.report.words_beside import texts_in_words, without_sinks


@final
@dataclasses.dataclass(frozen=True)
class Summary:
    """Sentences about the whole model at its longest length.

    `phases` and `failures` pair a name with a number of heads.
    """

    headline: tuple[str, ...]
    findings: tuple[str, ...]
    advice: tuple[str, ...]
    phases: tuple[tuple[str, int], ...]
    failures: tuple[tuple[str, int], ...]


def summarise(
    result: AuditResult, rows: Sequence[Record], whole: AuditResult | None = None
) -> Summary:
    """Put an audit into words; every number in them is computed from its table.

    Args:
        result: The audit on one text.
        rows: Its records.
        whole: The audit on all texts that this is one of.
    """
    overview = result.summary
    n, heads = overview["n"], overview["heads"]
    longest = at_length(rows, n)
    phases = tuple((p.value, overview["phases"].get(p.value, 0)) for p in Phase)
    linear, heavy, frozen = (number for _, number in phases)
    target = f"ε = {percent(overview['eps'])}"
    within = overview["within_eps"]
    headline = (
        f"At {count(n, 'token')}, {linear:,} of {count(heads)} "
        f"{'is' if linear == 1 else 'are'} in the linear phase, {heavy:,} in the "
        f"heavy-tailed and {frozen:,} in the frozen one.",
        f"The linear limit is within {target} of the output in "
        f"{count(within['linear_error_in_sample'])} as it stands, and in "
        f"{within['linear_error_kept']:,} once the sinks and the recent tokens are "
        "kept exact.",
    )
    failures = sorted(
        overview["failed_assumptions"].items(), key=lambda pair: not pair[0]
    )
    return Summary(
        headline=_glued(headline),
        findings=_glued(
            (
                *_findings(overview["medians"], n, longest),
                *without_sinks(longest, target),
                in_words(overview["outlook"]),
                *(() if whole is None else texts_in_words(whole, target)),
            )
        ),
        advice=_glued(_advice(overview["eps"], target, n, longest)),
        phases=phases,
        failures=tuple(failures),
    )


def _glued(sentences: Iterable[str]) -> tuple[str, ...]:
    """Keep formulas on one line."""
    return tuple(
        sentence.replace(" = ", "\u00a0=\u00a0").replace("log n", "log\u00a0n")
        for sentence in sentences
    )


def _findings(
    medians: dict[str, float], n: int, longest: Sequence[Record]
) -> tuple[str, ...]:
    log_n = math.log(n)
    sinks = sum(row["sink_share"] > 0.5 for row in longest)
    return (
        f"The median head has logit variance {show(medians['logit_variance'])}. "
        f"With log n = {show(log_n)}, the linear phase ends at "
        f"½ log n = {show(log_n / 2)} and the frozen one begins at "
        f"2 log n = {show(2 * log_n)}.",
        f"In the median the weights are worth {show(medians['ess'])} tokens; Gaussian "
        f"logits of the same variance would make it {show(medians['ess_law'])}.",
        "The linear limit in place of a head has an error of "
        f"{of_the_output(medians['linear_error_in_sample'])} in the median; with four "
        "sinks and the most recent tokens kept exact, "
        f"{of_the_output(medians['linear_error_kept'])}.",
        "On tokens it was not estimated from, the limit has an error of "
        f"{of_the_output(medians['limit_error_held_out'])} in the median; for Gaussian "
        f"tokens the exact law says {of_the_output(medians['limit_error_law'])}.",
        f"In {count(sinks)} the first four tokens take more than half of the weight.",
    )


def _advice(
    eps: float, target: str, n: int, longest: Sequence[Record]
) -> tuple[str, ...]:
    """Say what to do with the heads; every head is in exactly one of the sentences."""
    rest = [row for row in longest if not row["linear_error_kept"] <= eps]
    needed = [row["tokens_needed"] for row in rest]
    kept = len(longest) - len(rest)
    forever = sum(tokens is None for tokens in needed)
    later = sum(tokens is not None and tokens > n for tokens in needed)
    missed = len(rest) - forever - later
    said = (
        (
            kept,
            "Replace",
            "keep the sinks and the recent tokens exact and put the linear limit for "
            f"the rest; on this text the output stays within {target}",
        ),
        (
            later,
            "Keep softmax for now in",
            "on a longer prompt that goes on like this one the exact law brings them "
            f"within {target}; the card of a head says how long",
        ),
        (
            forever,
            "Keep softmax in",
            f"by the exact law not even 10¹⁵ tokens bring them within {target}",
        ),
        (
            missed,
            "Look closer at",
            "by the exact law the prompt is long enough, yet the limit is off: their "
            "tokens are not what the law assumes",
        ),
    )
    return tuple(f"{act} {count(heads)}: {why}." for heads, act, why in said if heads)


def of_the_law(longest: Sequence[Record]) -> str:
    """Say how well the exact law orders and sizes the errors at the longest length."""
    agreement = rank_correlation(longest, "limit_error_law", "limit_error_held_out")
    ratios = [
        row["limit_error_held_out"] / row["limit_error_law"]
        for row in longest
        if row["limit_error_held_out"] and row["limit_error_law"]
    ]
    said = []
    if agreement is not None:
        said.append(
            f"Over all heads at {count(longest[0]['n'], 'token')}, the predicted and "
            f"the measured error have rank correlation {agreement:.2f}."
        )
    if ratios:
        said.append(
            f"The median head has {show(statistics.median(ratios))} times the error "
            "that the law gives independent Gaussian tokens of the same moments."
        )
    said.append(
        "Beyond the longest length the dashed line goes on with logit variance and "
        "moments held fixed."
    )
    return " ".join(said)
