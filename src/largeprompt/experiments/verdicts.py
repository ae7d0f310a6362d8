"""What became of a statement when it was computed."""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, TypeAlias, final

import pyarrow as pa

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many steps of a part are done, and their total."""


class Verdict(enum.StrEnum):
    """Whether the computed value is what the statement says."""

    PASS = "pass"
    FAIL = "fail"
    NOT_COMPUTABLE = "not computable"


@final
@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement, what was computed for it, and the verdict.

    Attributes:
        id: A short name, unique among the claims of a reproduction.
        statement: What is claimed.
        source: Who claims it.
        verdict: Whether it holds here.
        value: What was computed; None where nothing could be.
        target: What the value must be, or why there is none.
    """

    id: str
    statement: str
    source: str
    verdict: Verdict
    value: float | None
    target: str

    def record(self) -> dict[str, Any]:
        """Return the claim as JSON-able fields."""
        return dataclasses.asdict(self) | {"verdict": self.verdict.value}


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Finding:
    """One part of a reproduction: a figure's data and the claims it bears on.

    Attributes:
        name: Of its files and its figure.
        title: Of the figure.
        note: What the figure shows, in a sentence or two.
        table: The data of the figure.
        claims: The claims.
    """

    name: str
    title: str
    note: str
    table: pa.Table
    claims: tuple[Claim, ...]


def at_most(id: str, statement: str, source: str, value: float, bound: float) -> Claim:
    """Return the claim that a value is at most a bound."""
    verdict = Verdict.PASS if value <= bound else Verdict.FAIL
    return Claim(id, statement, source, verdict, value, f"at most {bound:g}")


def at_least(id: str, statement: str, source: str, value: float, bound: float) -> Claim:
    """Return the claim that a value is at least a bound."""
    verdict = Verdict.PASS if value >= bound else Verdict.FAIL
    return Claim(id, statement, source, verdict, value, f"at least {bound:g}")


def between(
    id: str, statement: str, source: str, value: float, ends: tuple[float, float]
) -> Claim:
    """Return the claim that a value lies in an interval, its ends included."""
    low, high = ends
    verdict = Verdict.PASS if low <= value <= high else Verdict.FAIL
    return Claim(id, statement, source, verdict, value, f"from {low:g} to {high:g}")


def not_computable(id: str, statement: str, source: str, reason: str) -> Claim:
    """Return a claim that no computation can decide, with the reason as its target."""
    return Claim(id, statement, source, Verdict.NOT_COMPUTABLE, None, reason)
