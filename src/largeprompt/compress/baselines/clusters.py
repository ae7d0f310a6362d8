"""Clusters of keys, and the sums of tokens over the members of a set."""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor


def clusters(
    key: Float[Tensor, "n k"],
    members: Bool[Tensor, " n"],
    count: int,
    rounds: int = 8,
) -> Int64[Tensor, " n"]:
    """Return the cluster of each member, -1 for the others: k-means of the keys.

    Deterministic: the first centres are members at equal distances in the prompt. A
    cluster may be left without members.
    """
    points = key[members].float()
    labels = torch.full(members.shape, -1, dtype=torch.int64, device=key.device)
    if len(points) == 0:
        return labels
    spread = torch.linspace(0, len(points) - 1, count, device=key.device)
    centres = points[spread.round().long()]
    nearest = labels[: len(points)]
    for _ in range(rounds):
        nearest = torch.cdist(points, centres).argmin(-1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, points)
        sizes = torch.bincount(nearest, minlength=count)
        full = (sizes > 0)[:, None]
        centres = torch.where(full, sums / sizes.clamp(min=1)[:, None], centres)
    labels[members] = nearest
    return labels


def segments(members: Bool[Tensor, " n"], count: int) -> Int64[Tensor, " n"]:
    """Return the segment of each member, -1 for the others: equally many neighbours."""
    place = members.cumsum(0) - 1
    total = members.sum().clamp(min=1)
    return torch.where(members, place * count // total, -1)


def means(
    tokens: Float[Tensor, "n d"], labels: Int64[Tensor, " n"], count: int
) -> tuple[Float[Tensor, " c"], Float[Tensor, "c d"]]:
    """Return each set's size and the mean of its tokens, zero where it is empty."""
    inside = labels >= 0
    sizes = torch.bincount(labels[inside], minlength=count).to(tokens.dtype)
    sums = tokens.new_zeros(count, tokens.shape[-1])
    sums.index_add_(0, labels[inside], tokens[inside])
    return sizes, sums / sizes.clamp(min=1)[:, None]
