"""Atoms beside many weighted centroids: order 0, one number pair for each set."""

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from typing_extensions import override

from largeprompt.compress.baselines.clusters import clusters, means, segments
from largeprompt.compress.baselines.keeping import (
    atoms_of,
    highest,
    sinks_and_window,
    token_bytes,
    tokens_kept,
)
from largeprompt.compress.baselines.scores import pooled_weights
from largeprompt.compress.baselines.sets import affine_sets, set_bytes
from largeprompt.compress.compact import Compact
from largeprompt.compress.prompt import Compressor, LayerPrompt


@final
@dataclasses.dataclass(frozen=True)
class WeightedCentroids(Compressor):
    r"""Keep the tokens SnapKV would, and the rest as weighted centroids.

    A set of `n` tokens answers as one token of mean key and mean value and of weight
    `n`: log-mass $\log n + u \cdot \bar k$, output $\bar v$. Clusters of keys (k-means)
    are what Multipole Attention approximates far tokens by.
    `contiguous` sets of neighbours are Linformer with its mean
    pooling projection in place of a learned one; the weight, which pooling inside one
    softmax lacks, is what merges it with exact tokens.

    Cites:
        [multipole:25]; [linformer:20].

    Attributes:
        share: The part of the budget that centroids take.
        window: Last tokens kept, which also observe.
        kernel: Neighbouring positions that share a score, an odd number.
        sinks: First tokens kept.
        contiguous: Whether sets are neighbours in the prompt, and not clusters.
    """

    share: float = 0.3
    window: int = 64
    kernel: int = 5
    sinks: int = 4
    contiguous: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share must be between 0 and 1; got {self.share}")

    @override
    def compress(self, prompt: LayerPrompt, budget: Float[Tensor, " b"]) -> Compact:
        k, v, group = (
            prompt.key.shape[-1],
            prompt.value.shape[-1],
            prompt.query.shape[1],
        )
        one = set_bytes(k, v, 0, group)
        compressed = budget < prompt.valid.sum(-1)
        bytes_of_sets = self.share * token_bytes(prompt) * float(budget.min())
        sets = max(1, int(bytes_of_sets / one)) if compressed.any() else 0
        count = tokens_kept(
            prompt, budget, least=self.sinks + self.window, reserved=sets * one
        )
        scores = pooled_weights(prompt, self.window, self.kernel)
        always = sinks_and_window(prompt.valid, self.sinks, self.window)
        kept = highest(scores, prompt.valid, always, count)
        atoms = atoms_of(prompt, kept)
        if sets == 0:
            return Compact(atoms, None)
        tokens = torch.cat([prompt.key, prompt.value], -1).float()
        sizes, centres = zip(
            *(
                means(tokens[head], self._labels(tokens[head, :, :k], rest, sets), sets)
                for head, rest in enumerate(prompt.valid & ~kept)
            ),
            strict=True,
        )
        mean = torch.stack(centres)
        empty = mean.new_zeros(*mean.shape[:2], 0)
        return Compact(
            atoms,
            affine_sets(
                torch.stack(sizes).log(),
                mean[..., :k].contiguous(),
                mean[..., k:].contiguous(),
                empty[..., None].expand(*mean.shape[:2], 0, k),
                empty[..., None, :].expand(*mean.shape[:2], v, 0),
                group,
            ),
        )

    def _labels(
        self, key: Float[Tensor, "n k"], rest: Bool[Tensor, " n"], count: int
    ) -> Int64[Tensor, " n"]:
        if self.contiguous:
            return segments(rest, count)
        return clusters(key, rest, count)
