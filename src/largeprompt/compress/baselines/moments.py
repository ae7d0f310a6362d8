"""Atoms beside one summary of order 1 of all the other tokens."""

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from largeprompt.compress.baselines.keeping import (
    atoms_of,
    highest,
    sinks_and_window,
    tokens_kept,
)
from largeprompt.compress.baselines.scores import pooled_weights
from largeprompt.compress.baselines.sets import affine_sets, set_bytes
from largeprompt.compress.compact import Compact
from largeprompt.compress.prompt import Compressor, LayerPrompt
from largeprompt.compress.sets import LinearSets


@final
@dataclasses.dataclass(frozen=True)
class OrderOneMoments(Compressor):
    r"""Keep the tokens SnapKV would, and the moments of order 1 of the rest.

    With `tilted`, the sums of $e^{u \cdot k}$ and $e^{u \cdot k} v$ over the rest are
    expanded about the mean tilt $m$ that the prompt has kept:
    $\log Z_m + (u - m) \cdot \bar k$ and $\bar v + \mathrm{Cov}(v, k) (u - m)$, with
    $Z_m$, the means and the covariance under weights $e^{m \cdot k}$. Without, $m = 0$,
    which is a single summary of MomentKV: log-mass
    $\log n + u \cdot \bar k$, output $\bar v + \mathrm{Cov}(v, k) u$.

    Cov(v, k) is held as two factors of rank min(k, v)/2, which weigh as much as the
    matrix itself; of all maps of that rank it is the nearest one in mean square over
    the queries that the prompt has kept (Eckart and Young).

    Cites:
        [momentkv:26], for $m = 0$.
    """

    tilted: bool = True
    window: int = 64
    kernel: int = 5
    sinks: int = 4
    rank: int | None = None

    @override
    def compress(self, prompt: LayerPrompt, budget: Float[Tensor, " b"]) -> Compact:
        k, v = prompt.key.shape[-1], prompt.value.shape[-1]
        rank = min(k, v) // 2 if self.rank is None else self.rank
        held = set_bytes(k, v, rank, prompt.query.shape[1])
        least = self.sinks + self.window
        count = tokens_kept(prompt, budget, least=least, reserved=held)
        scores = pooled_weights(prompt, self.window, self.kernel)
        always = sinks_and_window(prompt.valid, self.sinks, self.window)
        kept = highest(scores, prompt.valid, always, count)
        rest = order_one(prompt, prompt.valid & ~kept, rank, tilted=self.tilted)
        return Compact(atoms_of(prompt, kept), rest)


def order_one(
    prompt: LayerPrompt, members: Bool[Tensor, "b n"], rank: int, *, tilted: bool
) -> LinearSets:
    """Return one set a head: its mass and means, and the leading part of Cov(v, k).

    Args:
        prompt: The layer's prompt.
        members: The tokens of each head's set.
        rank: The rank of the covariance that is kept.
        tilted: Whether the moments are those about the mean tilt, and not about zero.
    """
    tilt = prompt.scale * prompt.query.float().flatten(1, 2)  # b m k
    about = tilt.mean(1) if tilted else torch.zeros_like(tilt[:, 0])
    key, value = prompt.key.float(), prompt.value.float()
    logits = (key @ about[..., None])[..., 0].masked_fill(~members, -torch.inf)
    some = members.any(-1, keepdim=True)
    weight = torch.where(some, logits.softmax(-1), 0)[..., None]
    key_mean, value_mean = (weight * key).sum(-2), (weight * value).sum(-2)
    centred = weight * (value - value_mean[:, None])
    covariance = centred.mT @ (key - key_mean[:, None])  # b v k
    moved = tilt - about[:, None]
    left = torch.linalg.svd(covariance @ moved.mT, full_matrices=False).U[..., :rank]
    directions = left.mT @ covariance
    offset = left @ (directions @ about[..., None])
    mass = logits.logsumexp(-1) - (about * key_mean).sum(-1)
    return affine_sets(
        mass[:, None],
        key_mean[:, None],
        (value_mean - offset[..., 0])[:, None],
        directions[:, None],
        left[:, None].contiguous(),
        prompt.query.shape[1],
    )
