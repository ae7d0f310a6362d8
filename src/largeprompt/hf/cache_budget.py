"""How much of its tail each KV head may hold: a share, or what its errors ask for."""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.compress.held_out import HeldOut, held_out_each
from largeprompt.compress.indexing import ClusterIndex
from largeprompt.compress.policy import FRACTIONS, ErrorCurves
from largeprompt.hf.cache_segments import Method
from largeprompt.hf.cache_tail import Tail

Tokens = Float[Tensor, " b"]  # what each KV head may hold or read, float64
LATER = 128  # queries that ask in an error curve, after a cut in the prompt


class Budget(abc.ABC):
    """A rule that gives KV heads tokens, each worth its bytes in an exact cache."""

    @abc.abstractmethod
    def tokens(self, tails: Sequence[Tail], method: Method) -> list[Tokens]:
        """Return what each KV head of each tail may hold, or read.

        Args:
            tails: The tails that are compressed together: of all texts, and of all
                layers unless each is compressed as soon as it is read.
            method: The method of compression.

        Raises:
            ValueError: The budget is too small for the method.
        """


@final
@dataclasses.dataclass(frozen=True)
class Share(Budget):
    """The same share of the tail for every KV head; 1 keeps it exact."""

    share: float

    @override
    def tokens(self, tails: Sequence[Tail], method: Method) -> list[Tokens]:
        return [self.share * whole(tail) for tail in tails]


@final
@dataclasses.dataclass(frozen=True)
class ErrorTarget(Budget):
    """For each KV head the least share, of a few, whose error meets a target.

    Errors are medians of `HeldOut.relative`. A head that meets the target at no share
    stays exact.

    Attributes:
        error: The median relative error that no head may exceed.
        shares: The shares tried, increasing.
    """

    error: float
    shares: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.4)

    @override
    def tokens(self, tails: Sequence[Tail], method: Method) -> list[Tokens]:
        return [
            curves(tail, method, self.shares, HeldOut.median).meeting(self.error)
            for tail in tails
        ]


@final
@dataclasses.dataclass(frozen=True)
class SharedBudget(Budget):
    """A share of all tails together, given to the heads whose damage falls most by it.

    Damage is that of `HeldOut.damage`. Few heads carry most of it, those that look
    single tokens up; they end up with much, or whole, and most others with little.

    Attributes:
        share: The mean share.
        shares: The shares tried for each head, beside the mean share and 1; increasing.
    """

    share: float
    shares: tuple[float, ...] = FRACTIONS

    @override
    def tokens(self, tails: Sequence[Tail], method: Method) -> list[Tokens]:
        shares = sorted({*self.shares, self.share})
        found = [curves(tail, method, shares, HeldOut.damage) for tail in tails]
        whole_budget = sum(float(one.budget[:, -1].sum()) for one in found)
        lengths = {one.budget.shape[1] for one in found}
        if len(lengths) > 1:  # a text so short that its smallest share is none
            found = [_last(one, min(lengths)) for one in found]
        together = ErrorCurves(
            torch.cat([one.budget for one in found]),
            torch.cat([one.error for one in found]),
        )
        given = together.sharing(self.share * whole_budget)
        return list(given.split([len(one.budget) for one in found]))


def curves(
    tail: Tail,
    method: Method,
    shares: Sequence[float],
    measure: Callable[[HeldOut], Float[Tensor, " b"]],
) -> ErrorCurves:
    """Measure each KV head's error at some shares, those too small left out.

    Args:
        tail: The tail.
        method: A method that compresses.
        shares: Shares of the tail, increasing.
        measure: The error of what held-out queries see.
    """
    assert not isinstance(method, ClusterIndex), "an index drops nothing"
    exact = whole(tail)
    later = min(LATER, tail.prompt.query.shape[2] // 2)
    found, shares = list[HeldOut](), list(shares)
    while shares and not found:
        cuts = [share * (exact - later) for share in shares]
        try:
            found = held_out_each(method, tail.prompt, cuts, later)
        except ValueError:  # the smallest share is too small for the method
            shares = shares[1:]
    budgets = [share * exact for share in shares]
    errors = [measure(one).to(exact) for one in found]
    return ErrorCurves(
        torch.stack([*budgets, exact], 1),
        torch.stack([*errors, torch.zeros_like(exact)], 1),
    )


def whole(tail: Tail) -> Tokens:
    """Return the tokens of each KV head."""
    heads, n, _ = tail.prompt.key.shape
    return torch.full((heads,), float(n), dtype=torch.float64)


def _last(found: ErrorCurves, count: int) -> ErrorCurves:
    return ErrorCurves(found.budget[:, -count:], found.error[:, -count:])
