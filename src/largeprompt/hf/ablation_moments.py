r"""Moments of the bulk of every query's prefix, in time linear in the prompt.

Order-two moments of running sets of tokens are sums, so that one pass with a state of
$k^2 + k v$ numbers serves every query: the linear attention that the limit of softmax
is. The state moves a block of queries at a time; what ends inside a block is added
token by token.
"""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from largeprompt.audit.limits import Moments

BLOCK = 128  # queries at a time: bounds the memory, whatever the prompt's length


def running_moments(
    query: Float64[Tensor, "g n k"],
    key: Float64[Tensor, "n k"],
    value: Float64[Tensor, "n v"],
    begin: Int64[Tensor, " n"],
    end: Int64[Tensor, " n"],
) -> Moments:
    r"""Return the moments of the tokens $b_p \le j < e_p$ as query $p$ sees them.

    Args:
        query: Queries of the heads that share the keys, the logits' scale folded in.
        key: The keys, centred as a whole: variances are differences of sums.
        value: The values.
        begin: $b_p$, not decreasing in $p$.
        end: $e_p \ge b_p$, not decreasing in $p$.
    """
    first = int(begin[0])
    key, value = key[first:], value[first:]
    sums = _sums(query, key, value, end - first)
    if int(begin[-1]) > first:
        before = _sums(query, key, value, begin - first)
        sums = tuple(all_ - some for all_, some in zip(sums, before, strict=True))
    logit, square, mass, product = sums
    count = (end - begin).to(logit.dtype)
    divisor = count.clamp_min(1)
    mean = logit / divisor
    value_mean = mass / divisor[:, None]
    return Moments(
        count=count.expand_as(logit),
        logit_mean=mean,
        logit_variance=(square / divisor - mean.square()).clamp_min(0),
        value_mean=value_mean.expand_as(product),
        shift=product / divisor[:, None] - mean[..., None] * value_mean,
    )


def _sums(
    query: Float64[Tensor, "g n k"],
    key: Float64[Tensor, "n k"],
    value: Float64[Tensor, "n v"],
    ends: Int64[Tensor, " n"],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Return sums over $j < e_p$: of $\ell_j$, $\ell_j^2$, $v_j$ and $\ell_j v_j$."""
    k, v = key.shape[1], value.shape[1]
    keys, values = key.new_zeros(k), value.new_zeros(v)
    squares, products = key.new_zeros(k, k), key.new_zeros(k, v)
    seen, blocks = 0, []
    for start in range(0, query.shape[1], BLOCK):
        rows = slice(start, start + BLOCK)
        low, high = int(ends[rows][0]), int(ends[rows][-1])
        new_keys, new_values = key[seen:low], value[seen:low]
        keys = keys + new_keys.sum(0)
        values = values + new_values.sum(0)
        squares = squares + new_keys.mT @ new_keys
        products = products + new_keys.mT @ new_values
        seen = low
        q = query[:, rows]
        inside = torch.arange(low, high, device=ends.device) < ends[rows, None]
        logits = (q @ key[low:high].mT) * inside
        blocks.append(
            (
                q @ keys + logits.sum(-1),
                ((q @ squares) * q).sum(-1) + logits.square().sum(-1),
                values + inside.to(value.dtype) @ value[low:high],
                q @ products + logits @ value[low:high],
            )
        )
    logit, square, mass, product = zip(*blocks, strict=True)
    return (
        torch.cat(logit, 1),
        torch.cat(square, 1),
        torch.cat(mass, 0),
        torch.cat(product, 1),
    )
