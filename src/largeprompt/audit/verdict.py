"""What is true of a head, in a colleague's words, and the assumption that fails.

The linear limit assumes a prompt that is long for the head's logit variance, logits
that are close to Gaussian, and tokens that all come from one law. A head within eps
fails nothing; otherwise the first failure in the order of `Assumption` is named: what
can be repaired comes before what only explains.
"""

import dataclasses
import enum
from typing import final

from largeprompt.laws import Phase

HEAVY_TAILS = 1.0  # excess kurtosis: the tail of the logits starts to decide the mean
MISSED = 2.0  # times the law's prediction: far beyond the spread over a few queries


@final
class Assumption(enum.StrEnum):
    """What may fail, in the order in which it is looked for."""

    NONE = ""
    SINKS = "sinks and recent tokens"  # exact for those few, the rest is linear
    SHORT = "prompt too short"  # more tokens of the same kind would do
    SPREAD = "logits too spread"  # no number of tokens up to 1e15 would do
    GAUSSIAN = "logits not Gaussian"  # the law is missed, and their tails are heavy
    IDENTICAL = "tokens not identically distributed"  # missed, though they are not


@final
@dataclasses.dataclass(frozen=True)
class Evidence:
    """The numbers of one head at one length that a verdict rests on."""

    effective_n: int
    eps: float
    phase: Phase
    logit_variance: float
    logit_kurtosis: float
    ess: float
    in_sample: float
    kept: float
    held_out: float
    law: float
    tokens_needed: float | None

    @property
    def measured(self) -> float:
        """The worse error of the linear limit, in sample or held out."""
        return max(self.in_sample, self.held_out)


def failed_assumption(head: Evidence) -> Assumption:
    """Return the first assumption that fails, `Assumption.NONE` when none does."""
    if head.measured <= head.eps:
        return Assumption.NONE
    if head.kept <= head.eps:
        return Assumption.SINKS
    if head.tokens_needed is None:
        return Assumption.SPREAD
    if head.tokens_needed > head.effective_n or head.measured <= MISSED * head.law:
        return Assumption.SHORT
    if head.logit_kurtosis > HEAVY_TAILS:
        return Assumption.GAUSSIAN
    return Assumption.IDENTICAL


def verdict(head: Evidence) -> str:
    """Return one sentence on the head, with the numbers it rests on."""
    match failed_assumption(head):
        case Assumption.NONE:
            return (
                f"Linear: the limit misses the output by {_share(head.measured)}; the "
                f"law of Gaussian tokens expects {_share(head.law)}."
            )
        case Assumption.SINKS:
            return (
                "Linear but for a few tokens: with the first and the most recent ones "
                f"kept exact, the rest is linear to within {_share(head.kept)}."
            )
        case Assumption.SHORT:
            return (
                f"Not linear yet ({head.phase} phase): the limit is off by "
                f"{_share(head.measured)}, the law says {_share(head.law)}; "
                f"an error of {_share(head.eps)} needs {_needed(head.tokens_needed)}."
            )
        case Assumption.SPREAD:
            return (
                f"Not linear ({head.phase} phase): a logit variance of "
                f"{head.logit_variance:.3g} is too large for any prompt up to 1e15 "
                f"tokens; {_tokens(head.ess)} of {head.effective_n:,} carry the output."
            )
        case Assumption.GAUSSIAN:
            return (
                f"Not linear: the law promises {_share(head.law)} for Gaussian logits, "
                f"{_share(head.measured)} was measured, and the excess kurtosis of the "
                f"logits is {head.logit_kurtosis:.2g}."
            )
        case Assumption.IDENTICAL:
            return (
                f"Not linear: the law promises {_share(head.law)}, "
                f"{_share(head.measured)} was measured, and the logits look Gaussian; "
                "the tokens do not come from one law."
            )


def _share(error: float) -> str:
    return f"{error:.1%}" if error < 0.1 else f"{error:.0%}"


def _tokens(count: float) -> str:
    return f"about {count:,.0f} tokens" if count >= 1.5 else "one token"


def _needed(tokens: float | None) -> str:
    assert tokens is not None, "a head that no length helps is too spread"
    return f"about {tokens:,.0f} tokens" if tokens < 1e6 else f"{tokens:.1e} tokens"
