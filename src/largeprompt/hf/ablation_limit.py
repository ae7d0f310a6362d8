r"""A head's attention with the bulk of every prefix replaced by its linear limit.

The query at position $p$ sees the tokens $f, \dots, p$, $f$ the first that its sliding
window leaves. Exact stay the *sinks* $j < S$ and the *recent* tokens $p - w < j \le p$;
the *bulk* between them answers with its count, its mean key and value, and the
covariances $\mathrm{Cov}(k)$, $\mathrm{Cov}(v, k)$ of exactly these tokens: the
Gaussian limit of order two with causal running moments. Both parts merge by their
masses, as softmax would (docs/theory.md, section 16).
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from largeprompt.audit.limits import Answer, merge
from largeprompt.hf.ablation_mass import Bulk, answer
from largeprompt.hf.ablation_moments import BLOCK, running_moments

LARGE = 1e300  # stands for infinity where infinities would be subtracted


@final
@dataclasses.dataclass(frozen=True)
class Replacement:
    """What of a prefix stays exact, and how the rest answers.

    Attributes:
        sinks: How many of the text's first tokens stay exact.
        window: How many of the most recent tokens stay exact, the query's included.
        bulk: The law by which the tokens between them answer.
    """

    sinks: int = 4
    window: int = 64
    bulk: Bulk = Bulk.FINITE

    def __post_init__(self) -> None:
        """Check that the counts are counts."""
        for name in ("sinks", "window"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"{name} must be at least 0; got {getattr(self, name)}"
                )

    @property
    def kept(self) -> int:
        """The length up to which a prefix has no bulk."""
        return self.sinks + self.window


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """What a block of consecutive queries, from `start` on, sees exactly.

    Attributes:
        start: The position of the block's first query.
        sinks: How many first tokens stay exact.
        first: The first token that each query sees.
        begin: Where its bulk begins.
        end: Where its bulk ends: the first recent token.
    """

    start: int
    sinks: int
    first: Int64[Tensor, " m"]
    begin: Int64[Tensor, " m"]
    end: Int64[Tensor, " m"]

    def outside(self) -> tuple[Int64[Tensor, " t"], Bool[Tensor, "m t"]]:
        """Return the tokens seen exactly by some query, and which query sees which."""
        past = self.start + len(self.first)
        recent = max(self.sinks, int(self.end.min()))
        device = self.first.device
        tokens = torch.cat(
            [
                torch.arange(self.sinks, device=device),
                torch.arange(min(recent, past), past, device=device),
            ]
        )
        position = torch.arange(self.start, past, device=device)[:, None]
        visible = (tokens >= self.first[:, None]) & (tokens <= position)
        inside = (tokens >= self.begin[:, None]) & (tokens < self.end[:, None])
        return tokens, visible & ~inside


@torch.no_grad()
def replaced_attention(
    query: Float[Tensor, "g n k"],
    key: Float[Tensor, "n k"],
    value: Float[Tensor, "n v"],
    replacement: Replacement,
    *,
    scale: float,
    sliding: int | None,
) -> Float64[Tensor, "g n v"]:
    """Return causal attention of some heads that share their keys, the bulk replaced.

    Args:
        query: The heads' queries at every position.
        key: The keys that they share.
        value: The values.
        replacement: What stays exact and what does not.
        scale: Factor of the inner products.
        sliding: The width of the layer's own window, None where it sees everything.
    """
    tilt, value = scale * query.double(), value.double()
    key = key.double()
    key = key - key.mean(0)  # shifts every logit of a query alike
    position = torch.arange(key.shape[0], device=key.device)
    first = torch.zeros_like(position)
    if sliding is not None:
        first = (position - sliding + 1).clamp_min(0)
    begin = first.clamp_min(replacement.sinks)
    end = torch.maximum(position - replacement.window + 1, begin)
    begin = torch.minimum(begin, position + 1)
    end = torch.minimum(end, position + 1)
    bulk = answer(running_moments(tilt, key, value, begin, end), replacement.bulk)
    blocks = []
    for start in range(0, len(position), BLOCK):
        rows = slice(start, start + BLOCK)
        sinks = min(replacement.sinks, start + len(first[rows]))
        seen = Seen(start, sinks, first[rows], begin[rows], end[rows])
        kept = _attend_outside(tilt[:, rows], key, value, seen)
        part = Answer(bulk.log_mass[:, rows], bulk.output[:, rows])
        blocks.append(merge(kept, part))
    return torch.cat(blocks, 1)


def _attend_outside(
    tilt: Float64[Tensor, "g m k"],
    key: Float64[Tensor, "n k"],
    value: Float64[Tensor, "n v"],
    seen: Seen,
) -> Answer:
    """Return attention of a block of queries over what they see outside the bulk."""
    tokens, visible = seen.outside()
    logits = (tilt @ key[tokens].mT).masked_fill(~visible, -torch.inf)
    log_mass = logits.logsumexp(-1)
    weights = torch.exp(logits - log_mass.clamp_min(-LARGE)[..., None])  # none: zeros
    return Answer(log_mass, weights @ value[tokens])
