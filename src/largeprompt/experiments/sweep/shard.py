"""A share of the cells, for arrays of jobs that know their number and no scheduler."""

import dataclasses
from typing import Self, final

from largeprompt.experiments.sweep.specification import Cell, Specification


@final
@dataclasses.dataclass(frozen=True)
class Shard:
    """The cells number `index`, `index + count`, and so on.

    The shards 1/N to N/N are disjoint, and together they are the sweep.

    Attributes:
        index: From 1 to `count`.
        count: How many shards there are.
    """

    index: int = 1
    count: int = 1

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 1 <= self.index <= self.count:
            raise ValueError(
                f"a shard i/N must have i from 1 to N; got {self.index}/{self.count}"
            )

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the shard that a text such as `3/16` names.

        Raises:
            ValueError: It names none.
        """
        index, slash, count = text.partition("/")
        if not (slash and index.isdecimal() and count.isdecimal()):
            raise ValueError(f"a shard must be i/N, as in 3/16; got {text!r}")
        return cls(int(index), int(count))

    def cells(self, sweep: Specification) -> dict[str, Cell]:
        """Return the cells of the shard by their identity."""
        chosen = list(sweep.cells.items())[self.index - 1 :: self.count]
        return dict(chosen)
