"""A plan and its sections in words."""

import functools
import math
from typing import Any

from largeprompt.laws.outlook import CorrelatedTokens, Extension, Proof
from largeprompt.laws.phases import frozen_length, linear_length
from largeprompt.laws.plan import Plan
from largeprompt.laws.query_plan import QueryPlan
from largeprompt.laws.status import Status


@functools.singledispatch
def in_words(result: Any) -> str:
    """Say a plan or one of its sections in a few lines."""
    raise TypeError(f"there are words for plans and their sections; got {result}")


@in_words.register
def _(plan: Plan) -> str:
    linear = linear_length(plan.logit_variance)
    frozen = frozen_length(plan.logit_variance)
    return (
        f"{plan.n:,} tokens, logit variance {plan.logit_variance:.6g}, "
        f"dimension {plan.dim:.6g}: relative error {plan.eps:.4g}\n"
        f"{_weights(plan.inverse_ess)}\n"
        f"phase: {plan.phase} (linear from {_count(linear)} tokens, "
        f"frozen below {_count(frozen)})"
    )


@in_words.register
def _(plan: QueryPlan) -> str:
    proof = "proven" if plan.rate_status is Status.ASYMPTOTIC else "not proven"
    return (
        f"{plan.n:,} tokens, random query of mean logit variance "
        f"{plan.logit_variance:.6g}: relative error {plan.eps:.4g}\n"
        f"{_weights(plan.inverse_ess)}\n"
        f"phase: {plan.phase} at the mean logit variance; in the long run the mean "
        f"square error falls like n^-{plan.rate:.4g} ({proof})"
    )


@in_words.register
def _(proof: Proof) -> str:
    here = proof.obstacle or f"proven: relative error at most {proof.eps:.4g}"
    where = "at no length" if proof.n is None else f"from {_count(proof.n)} tokens on"
    return f"{here}\nproven: {proof.target:.4g} {where}"


@in_words.register
def _(extension: Extension) -> str:
    proven = (
        "nothing" if extension.proven is None else f"at most {extension.proven:.4g}"
    )
    return (
        f"growing to {extension.n:,} tokens moves the output by "
        f"{extension.drift:.4g} (root mean square; proven: {proven}), "
        f"with probability {1 - extension.delta:.0%} by at most {extension.radius:.4g}"
    )


@in_words.register
def _(tokens: CorrelatedTokens) -> str:
    needed = "more than 1e15" if tokens.n is None else _count(tokens.n)
    caution = "" if tokens.reliable else "; not reliable outside the linear phase"
    return (
        f"a token of correlation {tokens.correlation:g} counts as "
        f"{tokens.across_share:.4g} independent ones across the tilt, "
        f"{tokens.along_share:.4g} along it, {tokens.normaliser_share:.4g} for the "
        "normaliser\n"
        f"same error with such tokens: {needed} of them (leading order{caution})"
    )


def _weights(inverse_ess: float) -> str:
    return (
        f"as good as {1 / inverse_ess:,.1f} equally weighted tokens "
        f"(expected inverse effective sample size {inverse_ess:.4g})"
    )


def _count(length: float) -> str:
    """Format a length that no prompt may reach."""
    return f"{math.ceil(length):,}" if length < 1e9 else f"{length:.3g}"
