"""Which tokens always stay as they are: the sinks and the recent window."""

import torch
from jaxtyping import Bool
from torch import Tensor


def ends(n: int, sinks: int, window: int) -> Bool[Tensor, " n"]:
    """Mark the first `sinks` and the last `window` of `n` tokens."""
    position = torch.arange(n)
    return (position < sinks) | (position >= n - window)
