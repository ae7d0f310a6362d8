"""Which layers, heads and positions an audit measures, and at which lengths."""

import dataclasses
from collections.abc import Sequence
from typing import final

from largeprompt.audit.prefixes import Prefixes


@final
@dataclasses.dataclass(frozen=True)
class Question:
    """What to measure.

    Attributes:
        lengths: Prompt lengths in tokens, in order.
        queries: Query positions at each length.
        eps: Relative error that verdicts and `tokens_needed` ask for.
        layers: Numbers of the layers; every one when None.
        heads: Numbers of the query heads within a layer; every one when None.
        seed: Where query positions are drawn from; when None they are the last ones,
            or spread evenly where attention goes both ways.
    """

    lengths: Sequence[int]
    queries: int
    eps: float
    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None
    seed: int | None = None

    def prefixes(self, n: int, window: int | None, *, causal: bool) -> Prefixes:
        """Return the query positions at one length, and what each sees.

        Raises:
            ValueError: A prefix would be too short to be split.
        """
        if self.seed is not None:
            return Prefixes.drawn(
                n, self.queries, window, seed=self.seed, causal=causal
            )
        positions = Prefixes.last if causal else Prefixes.spread
        return positions(n, self.queries, window)


def chosen(wanted: Sequence[int] | None, count: int, what: str) -> list[int]:
    """Return the numbers asked for, in order, once each; all of them when None.

    Raises:
        ValueError: One of them is not among the first `count`, or there is none.
    """
    if wanted is None:
        return list(range(count))
    ordered = sorted(set(wanted))
    if not ordered:
        raise ValueError(f"{what} must name at least one; got none")
    for number in ordered:
        if not 0 <= number < count:
            raise ValueError(f"{what} must be from 0 to {count - 1}; got {number}")
    return ordered
