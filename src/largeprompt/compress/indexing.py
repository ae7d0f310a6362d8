r"""From a layer's prompt to clusters of keys that answer together.

Keys are clustered in the metric of the queries: with $S = E[u u^\top]$ over the
prompt's last tilts, the mean logit variance inside a cluster is
$\mathrm{tr}(S\,\mathrm{Cov}(k))$, which is what k-means of $S^{1/2} k$ makes small.
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from largeprompt.compress.cluster_sets import Clusters, cluster_sets
from largeprompt.compress.indexed import Indexed
from largeprompt.compress.kmeans import labels
from largeprompt.compress.prompt import LayerPrompt


@final
@dataclasses.dataclass(frozen=True)
class ClusterIndex:
    """How to index a prompt.

    Attributes:
        clusters: Clusters for each KV head.
        rank: Directions in which a cluster answers linearly.
        sinks: First tokens that are always read.
        window: Last tokens that are always read.
        ridge: Added to the second moment of the queries, relative to its mean
            eigenvalue.
    """

    clusters: int = 128
    rank: int = 4
    sinks: int = 4
    window: int = 64
    ridge: float = 0.01

    def __post_init__(self) -> None:
        """Check the settings."""
        if min(self.clusters, self.rank) < 1 or min(self.sinks, self.window) < 0:
            raise ValueError(
                "an index needs a cluster, a direction and no negative count; "
                f"got {self}"
            )
        if not self.ridge > 0:
            raise ValueError(f"ridge must be positive; got {self.ridge}")

    def index(self, prompt: LayerPrompt) -> Indexed:
        """Order a layer's keys and values by cluster and summarise each cluster.

        Raises:
            ValueError: The rank is larger than the width of the keys.
        """
        if self.rank > prompt.key.shape[-1]:
            raise ValueError(
                f"rank must be at most the keys' width {prompt.key.shape[-1]}; "
                f"got {self.rank}"
            )
        tilt = prompt.scale * prompt.query.float()
        metric, inverse = query_roots(tilt, self.ridge)
        rank = prompt.valid.cumsum(1)
        recent = rank > rank[:, -1:] - self.window
        always = prompt.valid & ((rank <= self.sinks) | recent)
        members = prompt.valid & ~always
        key = prompt.key.float().masked_fill(~members[..., None], 0)
        count = members.sum(1).clamp_min(1)[:, None, None]
        centred = key - key.sum(1, keepdim=True) / count  # a large bias loses no digits
        label = labels(centred @ metric, members, self.clusters)
        label = label.masked_fill(always, -1).masked_fill(~prompt.valid, self.clusters)
        order = label.sort(dim=1, stable=True).indices[..., None]
        key = prompt.key.gather(1, order.expand_as(prompt.key))
        value = prompt.value.gather(1, order.expand_as(prompt.value))
        starts = cluster_starts(label, self.clusters)
        clusters = Clusters(key, value, starts, metric, inverse)
        return Indexed(key, value, starts, cluster_sets(clusters, tilt, self.rank))


def query_roots(
    tilt: Float[Tensor, "b g w k"], ridge: float
) -> tuple[Float[Tensor, "b k k"], Float[Tensor, "b k k"]]:
    r"""Return $S^{1/2}$ and $S^{-1/2}$ for each KV head, $S$ with a ridge."""
    rows = tilt.flatten(1, 2).double()
    second = rows.mT @ rows / rows.shape[1]
    size = second.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    floor = torch.where(size > 0, ridge * size, 1.0)
    identity = torch.eye(rows.shape[-1], dtype=rows.dtype, device=rows.device)
    values, vectors = torch.linalg.eigh(second + floor * identity)
    root = values.clamp_min(floor[..., 0])[:, None].sqrt()
    return (
        ((vectors * root) @ vectors.mT).float(),
        ((vectors / root) @ vectors.mT).float(),
    )


def cluster_starts(
    label: Int64[Tensor, "b n"], clusters: int
) -> Int64[Tensor, "b c+1"]:
    """Return where each cluster starts once rows are sorted by label."""
    edges = torch.arange(clusters + 1, device=label.device).expand(len(label), -1)
    ordered = label.sort(dim=1).values
    return torch.searchsorted(ordered, edges.contiguous())
