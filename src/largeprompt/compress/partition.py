"""Which tokens stay as they are: sinks, the recent window, what queries weigh most."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def ends(n: int, sinks: int, window: int) -> Bool[Tensor, " n"]:
    """Mark the first `sinks` and the last `window` of `n` tokens."""
    position = torch.arange(n)
    return (position < sinks) | (position >= n - window)


def largest(
    scores: Float[Tensor, " n"], among: Bool[Tensor, " n"], count: int
) -> Bool[Tensor, " n"]:
    """Mark the `count` tokens of `among` with the largest scores (all, if fewer)."""
    marked = torch.zeros_like(among)
    count = min(count, int(among.sum()))
    order = scores.masked_fill(~among, -torch.inf).sort(descending=True, stable=True)
    marked[order.indices[:count]] = True
    return marked
