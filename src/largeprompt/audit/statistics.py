r"""What attention does at a few query positions, measured per query.

For each head an `m x n` block of logits, queries by tokens, in float64; never `n x n`.
No covariance matrix is formed: with logits $\ell_j$ of one query,
$\mathrm{Cov}(v, k) q$ is the mean of $(\ell_j - \bar\ell) v_j$.
"""

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from largeprompt.audit.limits import attention, merge, moments
from largeprompt.audit.prefixes import FIRST, Prefixes

BLOCK = 32  # queries at a time: bounds the memory of a block whatever `m` is

PerQuery = Float64[Tensor, "h m"]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class QueryStatistics:
    r"""One number a head and query; errors are squared norms, not yet relative.

    Attributes:
        logit_variance: $s^2$, the variance of the logits over the prefix.
        logit_kurtosis: Their excess kurtosis; 0 where they do not vary.
        inverse_ess: $\sum_j w_j^2$.
        entropy: $-\sum_j w_j \log w_j$, in nats.
        max_weight: $\max_j w_j$.
        max_logit: $\max_j \ell_j$.
        sink_share: The weight on the first `FIRST` tokens of the text.
        response: $\|\mathrm{Cov}(v, k) q\|^2$.
        value_variance: $\mathrm{tr}\,\mathrm{Cov}(v)$.
        in_sample: Squared error of the linear limit with the prefix's own moments.
        kept: The same with the first and the most recent tokens exact.
        held_out: Squared difference between attention over the even tokens and the
            linear limit with the moments of the odd ones.
        output: The head's output.
    """

    logit_variance: PerQuery
    logit_kurtosis: PerQuery
    inverse_ess: PerQuery
    entropy: PerQuery
    max_weight: PerQuery
    max_logit: PerQuery
    sink_share: PerQuery
    response: PerQuery
    value_variance: PerQuery
    in_sample: PerQuery
    kept: PerQuery
    held_out: PerQuery
    output: Float64[Tensor, "h m v"]


def query_statistics(
    query: Float[Tensor, "h n k"],
    key: Float[Tensor, "hkv n k"],
    value: Float[Tensor, "hkv n v"],
    prefixes: Prefixes,
    *,
    scale: float,
) -> QueryStatistics:
    """Return the statistics of one layer at the positions of `prefixes`.

    Args:
        query: The queries at every position, as the softmax meets them.
        key: The keys; each key/value head serves `h / hkv` consecutive query heads.
        value: The values.
        prefixes: The query positions to measure and what each sees.
        scale: Factor of the inner products; logits are `scale * q.k`.
    """
    heads = []
    for group, k, v in zip(query.chunk(key.shape[0]), key, value, strict=True):
        blocks = [
            _block(group, k, v, prefixes.rows(start, start + BLOCK), scale)
            for start in range(0, len(prefixes.positions), BLOCK)
        ]
        heads.append(_concatenate(blocks, dim=1))
    return _concatenate(heads, dim=0)


def _block(
    query: Float[Tensor, "g n k"],
    key: Float[Tensor, "n k"],
    value: Float[Tensor, "n v"],
    prefixes: Prefixes,
    scale: float,
) -> QueryStatistics:
    low = int(prefixes.first[0]) // 2 * 2  # even, so that a stride of 2 keeps parity
    high = int(prefixes.positions[-1]) + 1
    tokens = torch.arange(low, high)
    values = value[low:high].double()
    logits = scale * query[:, prefixes.positions].double() @ key[low:high].double().mT
    visible = prefixes.visible(tokens)

    own = moments(logits, visible, values)
    exact, weights = attention(logits, visible, values)
    kept = prefixes.kept(tokens)
    bulk = moments(logits, visible & ~kept, values).limit()
    partly = merge(attention(logits, kept, values)[0], bulk)
    even, odd = slice(0, None, 2), slice(1, None, 2)
    attended, _ = attention(logits[..., even], visible[:, even], values[even])
    held_out = moments(logits[..., odd], visible[:, odd], values[odd]).limit()

    mean_square = visible.double() @ values.square().sum(-1) / own.count
    return QueryStatistics(
        logit_variance=own.logit_variance,
        logit_kurtosis=_excess_kurtosis(logits - own.logit_mean[..., None], visible),
        inverse_ess=weights.square().sum(-1),
        entropy=torch.special.entr(weights).sum(-1),
        max_weight=weights.amax(-1),
        max_logit=logits.masked_fill(~visible, -torch.inf).amax(-1),
        sink_share=weights[..., tokens < FIRST].sum(-1),
        response=_square_norm(own.shift),
        value_variance=(mean_square - _square_norm(own.value_mean))
        .clamp_min(0)
        .expand_as(own.logit_variance),
        in_sample=_square_norm(own.limit().output - exact.output),
        kept=_square_norm(partly - exact.output),
        held_out=_square_norm(held_out.output - attended.output),
        output=exact.output,
    )


def _square_norm(x: Float64[Tensor, "*batch v"]) -> Float64[Tensor, "*batch"]:
    return x.square().sum(-1)


def _excess_kurtosis(
    centred: Float64[Tensor, "g m n"], visible: Tensor
) -> Float64[Tensor, "g m"]:
    squares = centred.square() * visible
    count = visible.sum(-1)
    variance = squares.sum(-1) / count
    fourth = squares.square().sum(-1) / count
    return torch.where(variance > 0, fourth / variance.square() - 3, 0.0)


def _concatenate(parts: Sequence[QueryStatistics], dim: int) -> QueryStatistics:
    names = [field.name for field in dataclasses.fields(QueryStatistics)]
    return QueryStatistics(
        **{
            name: torch.cat([getattr(part, name) for part in parts], dim)
            for name in names
        }
    )
