"""What `plan` answers for the kind of head it was given."""

import dataclasses
import math
from typing import Any, TypeAlias

from largeprompt.laws.plan import Plan, solve
from largeprompt.laws.plan_curves import PlanCurves, plan_curves, query_plan_curves
from largeprompt.laws.query_plan import QueryPlan, solve_over_queries
from largeprompt.laws.spectrum import QueryLawSpectrum, ValueSpectrum

Head: TypeAlias = ValueSpectrum | QueryLawSpectrum | None

DEFAULT_DIM = 64


def solved(
    head: Head,
    n: int | None,
    eps: float | None,
    logit_variance: float | None,
    dim: int | None,
) -> Plan | QueryPlan:
    """Return the plan of a head: isotropic if it is None, or by its spectrum.

    Raises:
        ValueError: Options that exclude each other, or a value outside its range.
        UnreachableTargetError: Nothing meets `eps`.
    """
    if head is None:
        size = DEFAULT_DIM if dim is None else dim
        return solve(n=n, eps=eps, logit_variance=logit_variance, dim=size)
    if dim is not None:
        raise ValueError(f"--dim must be left out beside --spectrum; got {dim}")
    if isinstance(head, ValueSpectrum):
        size = head.effective_dim
        return solve(n=n, eps=eps, logit_variance=logit_variance, dim=size)
    if logit_variance is not None:
        raise ValueError(
            "--logit-variance must be left out beside the spectrum of a query law; "
            f"got {logit_variance}"
        )
    return solve_over_queries(head, n=n, eps=eps)


def one_query(answer: Plan | QueryPlan) -> Plan:
    """Return the plan of one query.

    Raises:
        ValueError: The query is random.
    """
    if isinstance(answer, QueryPlan):
        raise ValueError(
            "--bound, --extend and --correlation need one query; "
            "got the spectrum of a query law"
        )
    return answer


def curves_of(answer: Plan | QueryPlan, head: Head) -> PlanCurves:
    """Return the curves that a plan lies on."""
    if isinstance(answer, Plan):
        return plan_curves(answer)
    assert isinstance(head, QueryLawSpectrum), "its plan has no other head"
    return query_plan_curves(answer, head)


def plain(result: Any) -> dict[str, Any]:
    """Return the fields of a result for JSON, which knows no infinity."""
    fields = dataclasses.asdict(result)
    return {k: None if v == math.inf else v for k, v in fields.items()}
