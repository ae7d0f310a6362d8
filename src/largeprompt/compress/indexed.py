"""A prompt that is kept, ordered so that a query reads a few clusters of it exactly."""

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.sets import LinearSets


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Indexed:
    """One layer's keys and values by cluster, and what each cluster answers at once.

    Attributes:
        key: Keys, as the model cached them. Rows before `starts[:, 0]` are always
            read (sinks and the recent window), then the clusters follow one another;
            rows after the last cluster are padding.
        value: Values, in the same order.
        starts: Cluster `i` of KV head `j` holds rows `starts[j, i]` to
            `starts[j, i + 1]`.
        sets: One linear set for each cluster; base minus infinity where it is empty.
    """

    key: Float[Tensor, "b n k"]
    value: Float[Tensor, "b n v"]
    starts: Int64[Tensor, "b c+1"]
    sets: LinearSets

    @property
    def nbytes(self) -> int:
        """The memory that the indexed prompt holds: all of it, and the sets."""
        tensors = (self.key, self.value, self.starts)
        return sum(tensor.nbytes for tensor in tensors) + self.sets.nbytes

    @property
    def sizes(self) -> Int64[Tensor, "b c"]:
        """The number of tokens in each cluster."""
        return self.starts.diff(dim=-1)

    def densities(
        self, predicted: Float[Tensor, "b g c"], exact: Float[Tensor, "b g"]
    ) -> Float[Tensor, "b c"]:
        """Return the mass that each cluster holds for each of its keys.

        The sum over the query heads of the cluster's share of the softmax, divided by
        its size.

        Args:
            predicted: The clusters' log-masses as the sets predict them.
            exact: The log-mass of what is read in any case.
        """
        mass = torch.logaddexp(predicted.logsumexp(-1), exact)[..., None]
        share = (predicted - mass).exp().nan_to_num(0).sum(1)
        return share / self.sizes.clamp_min(1)

    def choose(
        self,
        predicted: Float[Tensor, "b g c"],
        exact: Float[Tensor, "b g"],
        keys: int,
    ) -> Bool[Tensor, "b c"]:
        """Choose the clusters to open: the densest, as many as fit.

        They are taken in the order of `densities`, largest first; one that does not
        fit any more is passed over.

        Args:
            predicted: The clusters' log-masses as the sets predict them.
            exact: The log-mass of what is read in any case.
            keys: How many keys of a KV head may be read, those always read included.
        """
        density = self.densities(predicted, exact)
        order = density.sort(dim=-1, descending=True, stable=True).indices.tolist()
        sizes = self.sizes.tolist()
        opened = [[False] * len(row) for row in sizes]
        for head, ranking in enumerate(order):
            left = keys - int(self.starts[head, 0])
            for cluster in ranking:
                if 0 < sizes[head][cluster] <= left:
                    opened[head][cluster] = True
                    left -= sizes[head][cluster]
        return torch.tensor(opened, device=self.starts.device)

    def read(self, tilt: Float[Tensor, "b g k"], opened: Bool[Tensor, "b c"]) -> Answer:
        """Answer for the rows that are always read and the opened clusters, exactly."""
        tilt = tilt.to(torch.promote_types(tilt.dtype, torch.float32))
        inside = self._rows(opened)[:, None]
        logits = (tilt @ self.key.to(tilt.dtype).mT).masked_fill(~inside, -torch.inf)
        weights = logits.softmax(-1).nan_to_num(0)  # a head may read nothing
        value = self.value.to(tilt.dtype).masked_fill(~inside.mT, 0)
        return Answer(logits.logsumexp(-1), weights @ value)

    def _rows(self, opened: Bool[Tensor, "b c"]) -> Bool[Tensor, "b n"]:
        """Mark the rows that are read."""
        inside = torch.zeros(
            self.key.shape[:2], dtype=torch.bool, device=self.key.device
        )
        for head, flags in enumerate(opened.tolist()):
            inside[head, : self.starts[head, 0]] = True
            for cluster, flag in enumerate(flags):
                if flag:
                    first, last = self.starts[head, cluster : cluster + 2]
                    inside[head, first:last] = True
        return inside
