"""Linear sets made of moments alone: no calibration, no exact law."""

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.compress.sets import LinearSets

FLOAT = torch.float32.itemsize


def affine_sets(
    log_count: Float[Tensor, "b c"],
    key_mean: Float[Tensor, "b c k"],
    value_mean: Float[Tensor, "b c v"],
    directions: Float[Tensor, "b c r k"],
    responses: Float[Tensor, "b c v r"],
    group: int,
) -> LinearSets:
    """Return sets of log-mass `log_count + u.key_mean` and output affine in u."""
    b, c, r, _ = directions.shape
    flat = log_count.new_zeros(b, group, c, 2)  # the shortest table of a constant
    return LinearSets(
        base=log_count[:, None].expand(b, group, c).contiguous(),
        key_mean=key_mean,
        value_mean=value_mean,
        directions=directions,
        variances=log_count.new_zeros(b, c, r),
        responses=responses,
        gain=flat,
        damping=flat + 1,
        reach=log_count.new_ones(b, c),
    )


def set_bytes(k: int, v: int, rank: int, group: int) -> int:
    """Return what one of these sets weighs."""
    numbers = k + v + rank * (k + v + 1) + group * (1 + 2 + 2) + 1
    return FLOAT * numbers
