"""What an audit's arguments must be."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

PRECISIONS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_arrays(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise a ValueError unless the arrays are one layer of attention."""
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not q.ndim == k.ndim == v.ndim == 3:
        raise ValueError(f"q, k and v must be [heads, tokens, width]; got {shapes}")
    if not q.shape[1] == k.shape[1] == v.shape[1]:
        raise ValueError(f"q, k and v must have the same tokens; got {shapes}")
    if q.shape[2] != k.shape[2] or k.shape[0] != v.shape[0]:
        raise ValueError(f"q, k and v must fit together; got {shapes}")
    if k.shape[0] == 0 or q.shape[0] == 0 or q.shape[0] % k.shape[0]:
        raise ValueError(
            f"query heads must be a multiple of key/value heads; got {shapes}"
        )
    if 0 in (*q.shape, *v.shape):
        raise ValueError(f"q, k and v must hold numbers; got {shapes}")
    for name, array in (("q", q), ("k", k), ("v", v)):
        if array.dtype not in PRECISIONS:
            raise ValueError(
                f"{name} must be in half, single or double precision; got {array.dtype}"
            )
        if not array.isfinite().all():
            raise ValueError(f"{name} must be finite; got an infinity or a NaN")


def check_lengths(
    lengths: Sequence[int], longest: float, reason: str = "the arrays' tokens"
) -> list[int]:
    """Return the lengths in order, once each; raise a ValueError beyond `longest`."""
    ordered = sorted(set(lengths))
    if not ordered:
        raise ValueError("lengths must name at least one length; got none")
    if ordered[-1] > longest:
        raise ValueError(
            f"lengths must be at most {longest} ({reason}); got {ordered[-1]}"
        )
    return ordered


def check_eps(eps: float) -> None:
    """Raise a ValueError unless `eps` is a positive number."""
    if not 0 < eps < math.inf:
        raise ValueError(f"eps must be a positive number; got {eps}")
