"""What a compressed cache holds, what it cost, and how far off it is."""

import dataclasses
from typing import final


@final
@dataclasses.dataclass(frozen=True)
class LayerReport:
    """One compressed layer.

    Attributes:
        layer: Its number.
        nbytes: The memory that it holds.
        exact_nbytes: The memory that an exact cache would hold.
        seconds: The time that compression took.
        errors: The relative error of each query head's output over the compressed
            tokens, the median over held-out queries: head after head, text after text.
            Empty until something is compressed.
    """

    layer: int
    nbytes: int
    exact_nbytes: int
    seconds: float
    errors: tuple[float, ...]


@final
@dataclasses.dataclass(frozen=True)
class CacheReport:
    """A cache at one moment.

    Attributes:
        tokens: Positions that it has seen.
        nbytes: The memory that it holds, sliding layers included.
        exact_nbytes: The memory that an exact cache would hold.
        seconds: The time that compression took.
        layers: The layers that compress; sliding layers are left alone.
    """

    tokens: int
    nbytes: int
    exact_nbytes: int
    seconds: float
    layers: tuple[LayerReport, ...]

    @property
    def share(self) -> float:
        """The memory held, as a share of an exact cache's."""
        return self.nbytes / self.exact_nbytes if self.exact_nbytes else 1.0

    @property
    def mean_error(self) -> float | None:
        """The mean over all heads of the error on held-out queries, None if unknown."""
        errors = [error for layer in self.layers for error in layer.errors]
        return sum(errors) / len(errors) if errors else None
