"""Tokens that came after the prompt was compressed."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from largeprompt.compress.compact import Atoms


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Tail:
    """Later keys and values in buffers that need not be full.

    Attributes:
        key: Keys; those of KV head i are rows 0 to `lengths[i]`.
        value: Values.
        lengths: How many rows of each KV head are tokens.
    """

    key: Float[Tensor, "b t k"]
    value: Float[Tensor, "b t v"]
    lengths: Int64[Tensor, " b"]

    def atoms(self) -> Atoms:
        """Return the tokens without the unused rows."""
        rows = torch.arange(self.key.shape[1], device=self.key.device)
        inside = rows < self.lengths[:, None]
        starts = torch.nn.functional.pad(self.lengths.cumsum(0), (1, 0))
        return Atoms(self.key[inside], self.value[inside], starts)
