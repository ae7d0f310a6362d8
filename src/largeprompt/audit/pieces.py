"""A block of prefixes read in pieces: kept and other tokens, even and odd ones.

Most tokens are seen by every query of a block and kept exact by none. They make up the
middle, which needs no mask; the pieces on either side are masked query by query.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Self, final

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from largeprompt.audit.logits import CentredLogits
from largeprompt.audit.prefixes import FIRST, RECENT, Prefixes
from largeprompt.audit.sums import TokenSums, sums_of_sets, token_sums


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Parts:
    """The sums over four disjoint sets of tokens, and what is made of them.

    Attributes:
        even_kept: Even tokens among the kept ones (`Prefixes.kept`).
        odd_kept: Odd tokens among them.
        even_bulk: Even tokens among the others.
        odd_bulk: Odd tokens among the others.
        first_log_mass: Log of the mass of the first `FIRST` tokens of the text.
    """

    even_kept: TokenSums
    odd_kept: TokenSums
    even_bulk: TokenSums
    odd_bulk: TokenSums
    first_log_mass: Float64[Tensor, "h m"]

    def __add__(self, other: Self) -> Self:
        """Return the parts of the union of two disjoint sets of tokens.

        `first_log_mass` is of the text, and the same on either side.
        """
        return dataclasses.replace(
            self,
            even_kept=self.even_kept + other.even_kept,
            odd_kept=self.odd_kept + other.odd_kept,
            even_bulk=self.even_bulk + other.even_bulk,
            odd_bulk=self.odd_bulk + other.odd_bulk,
        )

    @functools.cached_property
    def even(self) -> TokenSums:
        """The tokens 0, 2, 4, ..."""
        return self.even_kept + self.even_bulk

    @functools.cached_property
    def odd(self) -> TokenSums:
        """The tokens 1, 3, 5, ..."""
        return self.odd_kept + self.odd_bulk

    @property
    def kept(self) -> TokenSums:
        """The tokens that a cache keeps exact."""
        return self.even_kept + self.odd_kept

    @property
    def bulk(self) -> TokenSums:
        """The tokens between them."""
        return self.even_bulk + self.odd_bulk

    @functools.cached_property
    def everything(self) -> TokenSums:
        """All tokens that the query sees."""
        return self.even + self.odd


def parts(
    logits: CentredLogits,
    value: Float64[Tensor, "h n v"],
    prefixes: Prefixes,
    low: int,
    elements: int,
    apart: Int64[Tensor, " s"] | None = None,
) -> tuple[Parts, Parts | None]:
    """Return the sums of a block: over all tokens but some, and over those.

    Args:
        logits: The logits, one row a query head and query.
        value: The values of the same tokens.
        prefixes: What each query sees.
        low: The token that the logits and values begin with.
        elements: How many logits to hold at a time.
        apart: Tokens whose sums are kept apart; when None there are none, and the
            second answer is None.
    """
    high = low + value.shape[1]
    middle = _middle(prefixes, high)
    step = max(2, elements // (len(value) * logits.query.shape[1]))
    totals: dict[tuple[bool, int, bool], TokenSums] = {}

    def add(parity: int, kept: bool, sums: TokenSums, *, away: bool = False) -> None:
        before = totals.get((away, parity, kept))
        totals[away, parity, kept] = sums if before is None else before + sums

    def add_masked(
        chosen: Bool[Tensor, " n"], parities: Sequence[int], *, away: bool
    ) -> None:
        # sums over nothing are those over a token that belongs to no set
        found = every[chosen] if chosen.any() else every[:1]
        for tokens in found.split(step):
            here, values = logits(tokens - low), value[:, tokens - low]
            visible = prefixes.visible(tokens) & chosen[tokens - low]
            kept = prefixes.kept(tokens) & visible
            names = [(parity, exact) for parity in parities for exact in (True, False)]
            sets = [
                (kept if exact else visible & ~kept) & (tokens % 2 == parity)
                for parity, exact in names
            ]
            for name, sums in zip(names, sums_of_sets(here, values, sets), strict=True):
                add(*name, sums, away=away)

    every = torch.arange(low, high, device=value.device)
    inner = (every >= middle.start) & (every < middle.stop)
    left = torch.zeros_like(inner)
    if apart is not None:
        left[apart[(apart >= low) & (apart < high)] - low] = True
    if apart is not None:
        add_masked(left, (0, 1), away=True)
    for parity in (0, 1):
        mine = every % 2 == parity
        add_masked(mine & ~inner & ~left, [parity], away=False)
        begin = middle.start + (middle.start + parity) % 2
        holes = every[mine & inner & left].tolist()
        for start, stop in zip(
            [begin, *(hole + 2 for hole in holes)], [*holes, middle.stop], strict=True
        ):
            for first in range(start, stop, 2 * step):
                piece = slice(first - low, min(first + 2 * step, stop) - low, 2)
                add(parity, False, token_sums(logits(piece), value[:, piece]))
    first_log_mass = _first_log_mass(logits, prefixes, low)

    def gathered(away: bool) -> Parts:
        return Parts(
            even_kept=totals[away, 0, True],
            odd_kept=totals[away, 1, True],
            even_bulk=totals[away, 0, False],
            odd_bulk=totals[away, 1, False],
            first_log_mass=first_log_mass,
        )

    return gathered(False), gathered(True) if apart is not None else None


def _middle(prefixes: Prefixes, high: int) -> range:
    """Return the tokens that every query sees and none keeps exact."""
    begin = int(prefixes.first.max()) + FIRST
    near = (prefixes.sizes // 8).clamp_max(RECENT)
    end = int((prefixes.positions - near).min()) + 1
    return range(begin, end) if begin < end else range(high, high)


def _first_log_mass(
    logits: CentredLogits, prefixes: Prefixes, low: int
) -> Float64[Tensor, "h m"]:
    """Return the log of the mass of the first tokens of the text, where it is seen."""
    block = logits(slice(0, max(0, FIRST - low)))
    tokens = low + torch.arange(block.shape[-1], device=block.device)
    seen = prefixes.visible(tokens)
    rows = block.unflatten(1, (-1, len(seen))).masked_fill(~seen, -torch.inf)
    return rows.logsumexp(-1).flatten(1)
