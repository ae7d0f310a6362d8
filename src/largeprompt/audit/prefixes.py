"""Which tokens each audited query sees: a prefix, a window, or the whole text."""

import dataclasses
from collections.abc import Sequence
from typing import Self, final

import numpy as np
import torch
from jaxtyping import Bool, Int64
from torch import Tensor

SHORTEST = 8  # tokens: both halves and the bulk between sinks and window hold some
FIRST = 4  # tokens at the start of a prefix that often serve as attention sinks
RECENT = 256  # most tokens at the end of a prefix that a cache keeps exact
DRAWN = 8  # drawn positions lie among the last n / 8


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Prefixes:
    r"""The tokens that a few query positions see.

    The query at position $p$ (counted from 0) sees the tokens
    $\max(0, p - \text{window} + 1), \dots, p$ where attention is causal, and otherwise
    the at most $\text{window}$ tokens around $p$, as many on either side.
    """

    n: int
    window: int | None
    positions: Int64[Tensor, " m"]
    causal: bool = True

    @classmethod
    def last(cls, n: int, queries: int, window: int | None) -> Self:
        """Return the last `queries` positions of `n` tokens, at most half of them.

        Raises:
            ValueError: A prefix would be too short to be split.
        """
        _check(n, queries, window)
        return cls(n, window, torch.arange(n - min(queries, n // 2), n))

    @classmethod
    def spread(cls, n: int, queries: int, window: int | None) -> Self:
        """Return `queries` evenly spread positions of `n` tokens that see both ways.

        Raises:
            ValueError: A prefix would be too short to be split.
        """
        _check(n, queries, window if window is None else window // 2 + 1)
        count = min(queries, n)
        return cls(n, window, (2 * torch.arange(count) + 1) * n // (2 * count), False)

    @classmethod
    def drawn(
        cls, n: int, queries: int, window: int | None, *, seed: int, causal: bool
    ) -> Self:
        """Return positions drawn without replacement, in order.

        Where attention is causal they are among the last n / 8 (more where `queries`
        asks for it, at most half), so that every prefix holds about `n` tokens. The
        draw depends on `seed` and `n` alone.

        Raises:
            ValueError: A prefix would be too short to be split.
        """
        _check(n, queries, window if window is None or causal else window // 2 + 1)
        pool = min(max(queries, n // DRAWN), n // 2) if causal else n
        key = np.random.Philox(key=[seed, n])
        offsets = np.random.Generator(key).choice(
            pool, min(queries, pool), replace=False, shuffle=False
        )
        return cls(n, window, torch.from_numpy(np.sort(offsets)) + n - pool, causal)

    @property
    def effective_n(self) -> int:
        """The number of tokens that the last query sees, the edges of a text apart."""
        return self.n if self.window is None else min(self.n, self.window)

    @property
    def first(self) -> Int64[Tensor, " m"]:
        """The first token that each query sees."""
        if self.window is None:
            return torch.zeros_like(self.positions)
        reach = self.window - 1 if self.causal else self.window // 2
        return (self.positions - reach).clamp_min(0)

    @property
    def final(self) -> Int64[Tensor, " m"]:
        """The last token that each query sees."""
        if self.causal:
            return self.positions
        if self.window is None:
            return torch.full_like(self.positions, self.n - 1)
        return (self.positions + self.window // 2).clamp_max(self.n - 1)

    @property
    def sizes(self) -> Int64[Tensor, " m"]:
        """The number of tokens that each query sees."""
        return self.final - self.first + 1

    @property
    def attended(self) -> Int64[Tensor, " m"]:
        """The number of even tokens that each query sees."""
        return self.final // 2 - (self.first + 1) // 2 + 1

    def visible(self, tokens: Int64[Tensor, " n"]) -> Bool[Tensor, "m n"]:
        """Whether each query sees each of `tokens`."""
        return (tokens >= self.first[:, None]) & (tokens <= self.final[:, None])

    def kept(self, tokens: Int64[Tensor, " n"]) -> Bool[Tensor, "m n"]:
        """Whether a token is among the first or the most recent ones of a prefix.

        The first `FIRST` and the last min(`RECENT`, size / 8) that the query sees; the
        nearest ones in place of the last where attention goes both ways.
        """
        recent = (self.sizes // 8).clamp_max(RECENT)[:, None]
        early = tokens < self.first[:, None] + FIRST
        behind = self.positions[:, None] - tokens
        late = behind < recent if self.causal else 2 * behind.abs() < recent
        return self.visible(tokens) & (early | late)

    def rows(self, start: int, stop: int) -> Self:
        """Return the prefixes of some of the queries."""
        return dataclasses.replace(self, positions=self.positions[start:stop])

    def at(self, chosen: Sequence[int]) -> Self:
        """Return the prefixes of the queries with these numbers."""
        return dataclasses.replace(self, positions=self.positions[list(chosen)])

    def to(self, device: torch.device) -> Self:
        """Return the same prefixes on another device."""
        return dataclasses.replace(self, positions=self.positions.to(device))


def _check(n: int, queries: int, window: int | None) -> None:
    if n < SHORTEST:
        raise ValueError(f"a length must be at least {SHORTEST}; got {n}")
    if queries < 1:
        raise ValueError(f"queries must be at least 1; got {queries}")
    if window is not None and window < SHORTEST:
        raise ValueError(f"a window must be at least {SHORTEST}; got {window}")
