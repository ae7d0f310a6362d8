r"""What attention does at a few query positions, measured per query.

For each head a block of logits, queries by tokens, in float64; never `n x n`, and not
even a whole row: prefixes are read in pieces whose sums add up (`audit.sums`). No
covariance matrix is formed: with logits $\ell_j$ of one query, $\mathrm{Cov}(v, k) q$
is the mean of $(\ell_j - \bar\ell) v_j$.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import final

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from largeprompt.audit.limits import merge
from largeprompt.audit.logits import Logits, centred
from largeprompt.audit.pieces import Parts, parts
from largeprompt.audit.prefixes import Prefixes

BLOCK = 32  # queries at a time
ELEMENTS = 2**18  # logits at a time, most: a piece that stays in the processor's cache
TINY = 2**11  # logits of a head and block up to which heads are taken together

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
        attended: The number of even tokens.
        moments: The number of odd ones.
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
    attended: PerQuery
    moments: PerQuery
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
    softcap: float | None = None,
) -> QueryStatistics:
    r"""Return the statistics of one layer at the positions of `prefixes`.

    They are computed where the arrays live and returned on the CPU.

    Args:
        query: The queries at every position, as the softmax meets them.
        key: The keys; each key/value head serves `h / hkv` consecutive query heads.
        value: The values.
        prefixes: The query positions to measure and what each sees.
        scale: Factor of the inner products; logits are `scale * q.k`.
        softcap: $c$ where the logits are $c \tanh(\text{scale}\, q \cdot k / c)$.
    """
    law = Logits(scale, softcap)
    prefixes = prefixes.to(query.device)
    return concatenate(
        [
            _head(q, k, v, prefixes, law, None)[0]
            for q, k, v in _head_groups(query, key, value, prefixes)
        ],
        dim=0,
    )


def with_and_without(
    query: Float[Tensor, "h n k"],
    key: Float[Tensor, "hkv n k"],
    value: Float[Tensor, "hkv n v"],
    prefixes: Prefixes,
    left_out: Sequence[Int64[Tensor, " s"]],
    law: Logits,
) -> tuple[QueryStatistics, QueryStatistics]:
    """Return the statistics of a layer, and those of the same heads less some tokens.

    The tokens left out are none to the second: its queries attend to the others alone,
    and its limits have the moments of the others. There, `sink_share` is the weight
    that all tokens left out have in the first. NaN where no even token remains.

    Args:
        query: As in `query_statistics`.
        key: As there.
        value: As there.
        prefixes: As there.
        left_out: Tokens to leave out, for each key/value head.
        law: How a query and a key become a logit.
    """
    prefixes = prefixes.to(query.device)
    group = len(query) // len(key)
    found = [
        _head(
            query[kv * group : (kv + 1) * group],
            key[kv : kv + 1],
            value[kv : kv + 1],
            prefixes,
            law,
            tokens,
        )
        for kv, tokens in enumerate(left_out)
    ]
    every, rest = zip(*found, strict=True)
    return concatenate(every, dim=0), concatenate(rest, dim=0)


def _head(
    query: Float[Tensor, "h n k"],
    key: Float[Tensor, "hkv n k"],
    value: Float[Tensor, "hkv n v"],
    prefixes: Prefixes,
    law: Logits,
    left_out: Int64[Tensor, " s"] | None,
) -> tuple[QueryStatistics, ...]:
    """Return the statistics of some heads, block by block: with and without a few."""
    blocks = [
        _block(query, key, value, prefixes.rows(start, start + BLOCK), law, left_out)
        for start in range(0, len(prefixes.positions), BLOCK)
    ]
    return tuple(concatenate(each, dim=1) for each in zip(*blocks, strict=True))


def _head_groups(
    query: Float[Tensor, "h n k"],
    key: Float[Tensor, "hkv n k"],
    value: Float[Tensor, "hkv n v"],
    prefixes: Prefixes,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield key/value heads one at a time, or several together where they are tiny.

    A head's numbers are the same to the bit whichever heads it is measured with, but
    for tiny ones, which matrix products may round in other ways together.
    """
    group = query.shape[0] // key.shape[0]
    rows = group * min(BLOCK, len(prefixes.positions))
    count = max(1, TINY // (rows * prefixes.n))
    for start in range(0, key.shape[0], count):
        stop = min(start + count, key.shape[0])
        yield query[start * group : stop * group], key[start:stop], value[start:stop]


def _block(
    query: Float[Tensor, "h n k"],
    key: Float[Tensor, "hkv n k"],
    value: Float[Tensor, "hkv n v"],
    prefixes: Prefixes,
    law: Logits,
    left_out: Int64[Tensor, " s"] | None,
) -> tuple[QueryStatistics, ...]:
    low = int(prefixes.first.min())
    high = int(prefixes.final.max()) + 1
    heads = len(key)
    queries = query[:, prefixes.positions].double()
    grouped = queries.reshape(heads, -1, query.shape[-1])  # hkv x (g m) x k
    block = centred(grouped, key[:, low:high].double(), law)
    values = value[:, low:high].double()
    rest, apart = parts(block, values, prefixes, low, ELEMENTS, left_out)
    if apart is None:
        share = (rest.first_log_mass - rest.everything.log_mass).exp()
        return (_answered(rest, len(query), block.reference, share),)
    every = rest + apart
    total = every.everything.log_mass
    shares = (every.first_log_mass - total, apart.everything.log_mass - total)
    return tuple(
        _answered(found, len(query), block.reference, share.exp())
        for found, share in zip((every, rest), shares, strict=True)
    )


def _answered(
    found: Parts,
    heads: int,
    reference: Float64[Tensor, "hkv r"],
    sink_share: Float64[Tensor, "hkv r"],
) -> QueryStatistics:
    own = found.everything
    exact, moments = own.attention(), own.moments()
    partly = merge(found.kept.attention(), found.bulk.moments().limit())
    held_out = found.odd.moments().limit().output - found.even.attention().output
    columns = {
        "logit_variance": moments.logit_variance,
        "logit_kurtosis": own.excess_kurtosis,
        "inverse_ess": own.mass_square / own.mass.square(),
        "entropy": own.log_mass - own.mass_logit / own.mass,
        "max_weight": 1 / own.mass,
        "max_logit": own.top + reference,
        "sink_share": sink_share,
        "attended": found.even.count,
        "moments": found.odd.count,
        "response": _square_norm(moments.shift),
        "value_variance": own.value_variance,
        "in_sample": _square_norm(moments.limit().output - exact.output),
        "kept": _square_norm(partly - exact.output),
        "held_out": _square_norm(held_out),
        "output": exact.output,
    }
    return QueryStatistics(
        **{
            name: column.reshape(heads, -1, *column.shape[2:]).cpu()
            for name, column in columns.items()
        }
    )


def _square_norm(x: Float64[Tensor, "*batch v"]) -> Float64[Tensor, "*batch"]:
    return x.square().sum(-1)


def concatenate(pieces: Sequence[QueryStatistics], dim: int) -> QueryStatistics:
    """Put statistics of other heads (`dim` 0) or other queries (1) side by side."""
    names = [field.name for field in dataclasses.fields(QueryStatistics)]
    return QueryStatistics(
        **{
            name: torch.cat([getattr(piece, name) for piece in pieces], dim)
            for name in names
        }
    )
