"""Clusters of keys, each near in the sense of the queries that will ask: k-means."""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

SAMPLE = 16_384  # tokens a head that the centres are fitted on
ITERATIONS = 8
CHUNK = 8_192  # tokens that are compared with the centres at a time

Points = Float[Tensor, "b n k"]
Centres = Float[Tensor, "b c k"]


def labels(
    points: Points, members: Bool[Tensor, "b n"], clusters: int
) -> Int64[Tensor, "b n"]:
    """Return the nearest centre of every point; of points outside `members` too.

    Lloyd's iteration from members at equal distances in the prompt, on at most 16,384
    of them; a cluster that empties starts again at the point that is furthest from its
    own. No random numbers.

    Args:
        points: What to cluster, centred near 0 (distances are expanded squares).
        members: Which points the centres are fitted to.
        clusters: How many centres; some stay empty when there are fewer points.
    """
    fitted = sample(points, members, min(SAMPLE, points.shape[1]))
    centres = sample(points, members, clusters)
    for _ in range(ITERATIONS):
        nearest, distance = assign(fitted, centres)
        centres = means(fitted, nearest, centres, distance)
    chunks = points.split(CHUNK, dim=1)
    return torch.cat([assign(chunk, centres)[0] for chunk in chunks], 1)


def sample(points: Points, members: Bool[Tensor, "b n"], count: int) -> Points:
    """Return `count` members of each row, at equal distances in their order."""
    order = members.sort(dim=1, descending=True, stable=True).indices
    last = (members.sum(1, keepdim=True) - 1).clamp_min(0)
    share = torch.linspace(0, 1, count, dtype=torch.float64, device=points.device)
    chosen = order.gather(1, (last * share).round().long())
    return points.gather(1, chosen[..., None].expand(-1, -1, points.shape[-1]))


def assign(
    points: Points, centres: Centres
) -> tuple[Int64[Tensor, "b n"], Float[Tensor, "b n"]]:
    """Return each point's nearest centre and its squared distance."""
    squares = centres.square().sum(-1)[:, None]
    nearest = torch.baddbmm(squares, points, centres.mT, alpha=-2).min(-1)
    return nearest.indices, nearest.values + points.square().sum(-1)


def means(
    points: Points,
    nearest: Int64[Tensor, "b n"],
    centres: Centres,
    distance: Float[Tensor, "b n"],
) -> Centres:
    """Return the mean of each cluster; an empty one moves to a point left far off."""
    index = nearest[..., None].expand_as(points)
    sums = torch.zeros_like(centres).scatter_add_(1, index, points)
    ones = torch.ones_like(distance)
    counts = distance.new_zeros(centres.shape[:2]).scatter_add_(1, nearest, ones)
    empty = counts == 0
    reserve = min(centres.shape[1], points.shape[1])
    far = distance.topk(reserve, dim=1).indices
    turn = (empty.cumsum(1) - 1).clamp(0, reserve - 1)
    chosen = far.gather(1, turn)[..., None].expand_as(centres)
    moved = points.gather(1, chosen)
    return torch.where(empty[..., None], moved, sums / counts.clamp_min(1)[..., None])
