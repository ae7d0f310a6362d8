"""Which positions of a batch are tokens: pads are not, and are excluded everywhere."""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor


def real_tokens(
    attention_mask: Any, batch: int
) -> Iterator[Int64[Tensor, " n"] | None]:
    """Yield the positions of each text's tokens, None where all of them are.

    A token sees itself, whether attention is causal, sliding or goes both ways; a pad
    is seen by nothing.

    Args:
        attention_mask: The mask that attention was given; anything but a tensor is one
            that leaves no token out.
        batch: The number of texts.
    """
    if not isinstance(attention_mask, Tensor):
        yield from [None] * batch
        return
    diagonals = attention_mask[:, 0].diagonal(dim1=-2, dim2=-1)
    for real in diagonals.expand(batch, -1):
        yield None if bool(real.all()) else torch.nonzero(real).flatten()
