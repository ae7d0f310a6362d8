r"""Linear sets of few directions for the clusters of an index.

With $M = S^{1/2}$, $S$ the second moment of the tilts $u$, write $u = M \zeta$. A
cluster's logit variance is $\zeta^\top W \zeta$, $W = M \mathrm{Cov}(k) M$. The leading
eigenvectors $e_i$ of $W$ give directions $D_i = e_i^\top M^{-1}$ with variances
$\lambda_i$ and responses $\mathrm{Cov}(v, k) M e_i$; as $E \zeta \zeta^\top = I$, the
directions left out add $\rho^2 = \sum_{i > r} \lambda_i$ to the logit variance on
average, and the tables are taken at $\sqrt{s^2 + \rho^2}$.
"""

import dataclasses
import itertools
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from largeprompt.audit.surface import law_surface
from largeprompt.compress.sets import LinearSets

NODES = 64  # of a set's tables
FINE_NODES = 513  # of the integral of the exact law
LARGEST_SCALE = 20.0  # of the logits, up to which the law is tabulated
MARGIN = 1.5  # a table's reach over the largest s among the prompt's own queries

Array = NDArray[np.float64]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Clusters:
    """Keys and values by cluster, and the queries' metric with its inverse."""

    key: Float[Tensor, "b n k"]
    value: Float[Tensor, "b n v"]
    starts: Int64[Tensor, "b c+1"]
    metric: Float[Tensor, "b k k"]
    inverse: Float[Tensor, "b k k"]


def cluster_sets(
    clusters: Clusters, tilt: Float[Tensor, "b g w k"], rank: int
) -> LinearSets:
    """Return one linear set for each cluster, for the query heads that `tilt` holds."""
    heads = [_head(clusters, head, rank) for head in range(len(clusters.starts))]
    key_mean, value_mean, directions, variances, responses, left_out = (
        torch.stack(fields) for fields in zip(*heads, strict=True)
    )
    z = torch.einsum("bcrk,bgwk->bcgwr", directions, tilt)
    s = torch.einsum("bcr,bcgwr->bcgw", variances, z.square()).sqrt()
    reach = (MARGIN * s.amax((-2, -1))).clamp(1.0, LARGEST_SCALE)
    sizes = clusters.starts.diff(dim=-1)
    gain, damping = finite_set_tables(sizes, left_out, reach)
    groups = tilt.shape[1]
    return LinearSets(
        base=_for_all(sizes.float().log(), groups),
        key_mean=key_mean,
        value_mean=value_mean,
        directions=directions,
        variances=variances,
        responses=responses.mT,  # in memory a direction's response is contiguous
        gain=_for_all(gain, groups),
        damping=_for_all(damping, groups),
        reach=reach,
    )


def _for_all(field: Tensor, groups: int) -> Tensor:
    """Repeat a field for every query head."""
    return field[:, None].repeat(1, groups, *(1 for _ in field.shape[1:]))


def _head(clusters: Clusters, head: int, rank: int) -> tuple[Tensor, ...]:
    """Return the fields of one KV head, the response transposed."""
    edges = clusters.starts[head].tolist()
    metric, inverse = clusters.metric[head], clusters.inverse[head]
    means, scatters, crosses = [], [], []
    for first, last in itertools.pairwise(edges):
        count = max(last - first, 1)
        key = clusters.key[head, first:last].float()
        value = clusters.value[head, first:last].float()
        mean = key.sum(0) / count, value.sum(0) / count
        seen = (key - mean[0]) @ metric
        means.append(mean)
        scatters.append(seen.mT @ seen / count)
        crosses.append(seen.mT @ (value - mean[1]) / count)
    scatter = torch.stack(scatters)
    values, vectors = torch.linalg.eigh(scatter)
    leading = vectors[..., -rank:].mT
    variances = values[..., -rank:].clamp_min(0)
    total = scatter.diagonal(dim1=-2, dim2=-1).sum(-1)
    return (
        torch.stack([key for key, _ in means]),
        torch.stack([value for _, value in means]),
        leading @ inverse,
        variances,
        leading @ torch.stack(crosses),
        (total - variances.sum(-1)).clamp_min(0),
    )


def finite_set_tables(
    sizes: Int64[Tensor, "b c"],
    left_out: Float[Tensor, "b c"],
    reach: Float[Tensor, "b c"],
) -> tuple[Float[Tensor, "b c t"], Float[Tensor, "b c t"]]:
    r"""Return gain and damping of sets of so many tokens, by the exact law.

    At $\tau = \sqrt{s^2 + \rho^2}$ the gain is
    $\int_0^\tau \sigma (1 - \varphi(n, \sigma)) d\sigma$ and the damping
    $1 - \varphi(n, \tau)$.

    Args:
        sizes: n; an empty set is treated as one token.
        left_out: $\rho^2$.
        reach: The largest $s$ of each set's table.
    """
    counts, place = np.unique(sizes.clamp_min(1).cpu().numpy(), return_inverse=True)
    fine = np.linspace(0, LARGEST_SCALE, FINE_NODES)
    damping = law_surface()(counts[:, None], fine**2).shrinkage
    slope = fine * damping
    steps = (slope[:, 1:] + slope[:, :-1]) / 2 * np.diff(fine)
    gain = np.pad(steps.cumsum(1), ((0, 0), (1, 0)))
    share = np.linspace(0, 1, NODES)
    s = reach.double().cpu().numpy()[..., None] * share
    scale = np.sqrt(s**2 + left_out.double().cpu().numpy()[..., None])
    answers = [
        _at(table[place.reshape(sizes.shape)], scale) for table in (gain, damping)
    ]
    return answers[0].to(sizes.device), answers[1].to(sizes.device)


def _at(tables: Array, scale: Array) -> Tensor:
    """Interpolate each table on the fine grid; beyond it the last slope goes on."""
    where = scale * ((FINE_NODES - 1) / LARGEST_SCALE)
    left = np.clip(where.astype(np.int64), 0, FINE_NODES - 2)
    share = where - left
    low = np.take_along_axis(tables, left, -1)
    high = np.take_along_axis(tables, left + 1, -1)
    return torch.from_numpy(low + share * (high - low)).float()
