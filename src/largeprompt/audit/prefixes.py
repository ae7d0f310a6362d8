"""Which tokens each audited query sees: its own causal, possibly windowed, prefix."""

import dataclasses
from typing import Self, final

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

SHORTEST = 8  # tokens: both halves and the bulk between sinks and window hold some
FIRST = 4  # tokens at the start of a prefix that often serve as attention sinks
RECENT = 256  # most tokens at the end of a prefix that a cache keeps exact


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Prefixes:
    r"""The prefixes of a few query positions.

    The query at position $p$ (counted from 0) sees the tokens
    $\max(0, p - \text{window} + 1), \dots, p$.
    """

    n: int
    window: int | None
    positions: Int64[Tensor, " m"]

    @classmethod
    def last(cls, n: int, queries: int, window: int | None) -> Self:
        """Return the last `queries` positions of `n` tokens, at most half of them.

        Raises:
            ValueError: A prefix would be too short to be split.
        """
        if n < SHORTEST:
            raise ValueError(f"a length must be at least {SHORTEST}; got {n}")
        if queries < 1:
            raise ValueError(f"queries must be at least 1; got {queries}")
        if window is not None and window < SHORTEST:
            raise ValueError(f"a window must be at least {SHORTEST}; got {window}")
        return cls(n, window, torch.arange(n - min(queries, n // 2), n))

    @property
    def effective_n(self) -> int:
        """The number of tokens that the last query sees."""
        return self.n if self.window is None else min(self.n, self.window)

    @property
    def first(self) -> Int64[Tensor, " m"]:
        """The first token that each query sees."""
        if self.window is None:
            return torch.zeros_like(self.positions)
        return (self.positions - self.window + 1).clamp_min(0)

    @property
    def sizes(self) -> Int64[Tensor, " m"]:
        """The number of tokens that each query sees."""
        return self.positions - self.first + 1

    @property
    def attended(self) -> Int64[Tensor, " m"]:
        """The number of even tokens that each query sees."""
        return self.positions // 2 - (self.first + 1) // 2 + 1

    def visible(self, tokens: Int64[Tensor, " n"]) -> Bool[Tensor, "m n"]:
        """Whether each query sees each of `tokens`."""
        return (tokens >= self.first[:, None]) & (tokens <= self.positions[:, None])

    def kept(self, tokens: Int64[Tensor, " n"]) -> Bool[Tensor, "m n"]:
        """Whether a token is among the first or the most recent ones of a prefix.

        The first `FIRST` and the last min(`RECENT`, size / 8) that the query sees.
        """
        recent = (self.sizes // 8).clamp_max(RECENT)
        early = tokens < self.first[:, None] + FIRST
        late = tokens > (self.positions - recent)[:, None]
        return self.visible(tokens) & (early | late)

    def rows(self, start: int, stop: int) -> Self:
        """Return the prefixes of some of the queries."""
        return dataclasses.replace(self, positions=self.positions[start:stop])
