"""A block of prefixes read in pieces: kept and other tokens, even and odd ones.

Most tokens are seen by every query of a block and kept exact by none. They make up the
middle, which needs no mask; the pieces on either side are masked query by query.
"""

import dataclasses
import functools
from typing import final

import torch
from jaxtyping import Float64
from torch import Tensor

from largeprompt.audit.logits import CentredLogits
from largeprompt.audit.prefixes import FIRST, RECENT, Prefixes
from largeprompt.audit.sums import TokenSums, token_sums


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

    @property
    def everything(self) -> TokenSums:
        """All tokens that the query sees."""
        return self.even + self.odd


def parts(
    logits: CentredLogits,
    value: Float64[Tensor, "h n v"],
    prefixes: Prefixes,
    low: int,
    elements: int,
) -> Parts:
    """Return the sums of a block.

    Args:
        logits: The logits, one row a query head and query.
        value: The values of the same tokens.
        prefixes: What each query sees.
        low: The token that the logits and values begin with.
        elements: How many logits to hold at a time.
    """
    high = low + value.shape[1]
    middle = _middle(prefixes, high)
    step = max(2, elements // (len(value) * logits.query.shape[1]))
    totals: dict[tuple[int, bool], TokenSums] = {}

    def add(parity: int, kept: bool, sums: TokenSums) -> None:
        before = totals.get((parity, kept))
        totals[parity, kept] = sums if before is None else before + sums

    edges = torch.cat(
        [
            torch.arange(low, middle.start, device=value.device),
            torch.arange(middle.stop, high, device=value.device),
        ]
    )
    for parity in (0, 1):
        for tokens in edges[edges % 2 == parity].split(step):
            here, values = logits(tokens - low), value[:, tokens - low]
            kept, visible = prefixes.kept(tokens), prefixes.visible(tokens)
            add(parity, True, token_sums(here, values, kept))
            add(parity, False, token_sums(here, values, visible & ~kept))
        begin = middle.start + (middle.start + parity) % 2
        for start in range(begin, middle.stop, 2 * step):
            piece = slice(start - low, min(start + 2 * step, middle.stop) - low, 2)
            add(parity, False, token_sums(logits(piece), value[:, piece]))
    return Parts(
        even_kept=totals[0, True],
        odd_kept=totals[1, True],
        even_bulk=totals[0, False],
        odd_bulk=totals[1, False],
        first_log_mass=_first_log_mass(logits, prefixes, low),
    )


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
