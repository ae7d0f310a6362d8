"""A few queries read in full: what needs every logit of a query at once."""

import dataclasses
from collections.abc import Sequence
from typing import final

import numpy as np
from jaxtyping import Float, Int64
from numpy.typing import NDArray
from torch import Tensor

from largeprompt.audit.bands import band_edges, band_weights
from largeprompt.audit.dependence import autocorrelation, bandwidth, independent_share
from largeprompt.audit.growth import doublings, shorter_lengths
from largeprompt.audit.logit_shape import (
    MULTIPLES,
    log_means,
    proxy_ratio,
    tail_exponents,
)
from largeprompt.audit.logits import Logits, centred
from largeprompt.audit.prefixes import Prefixes

Array = NDArray[np.float64]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Reading:
    r"""The heads of a group at one query, and what is made of their logits.

    Arrays have one row a head.

    Attributes:
        standard: The logits less their mean, over their standard deviation; 0 where
            they do not vary.
        log_mgf: `log_means` at `MULTIPLES` of the query.
        variance: $s^2$.
        proxy: `proxy_ratio`.
        tail: `tail_exponents`.
        proxy_rest: `proxy_ratio` without the sinks.
        tail_rest: `tail_exponents` without them.
        correlation: `autocorrelation`, up to a quarter of the fewest tokens.
        independent: `independent_share`.
        early: `band_weights` from the start of the text.
        recent: `band_weights` from the query backwards.
        moved: `doublings`.
    """

    standard: Array
    log_mgf: Array
    variance: Array
    proxy: Array
    tail: Array
    proxy_rest: Array
    tail_rest: Array
    correlation: Array
    independent: Array
    early: tuple[Array, Array]
    recent: tuple[Array, Array]
    moved: Array


def read(
    query: Float[Tensor, "g n k"],
    key: Float[Tensor, "n k"],
    value: Float[Tensor, "n v"],
    prefixes: Prefixes,
    law: Logits,
    sinks: Int64[Tensor, " s"],
) -> list[Reading]:
    """Return what a group of heads makes of each query, one after the other.

    Args:
        query: The queries of the heads that read one key/value head.
        key: Its keys.
        value: Its values.
        prefixes: The query positions to read, and what each sees.
        law: How a query and a key become a logit.
        sinks: The tokens that are none to `proxy_rest` and `tail_rest`.
    """
    low, high = int(prefixes.first.min()), int(prefixes.final.max()) + 1
    values = value[low:high].double().cpu().numpy()
    rows = query[:, prefixes.positions].double().flatten(0, 1)[None]
    block = centred(rows, key[None, low:high].double(), law)
    shape = (len(query), len(prefixes.positions))
    every = block(slice(None))[0].reshape(*shape, -1).cpu().numpy()
    references = block.reference[0].reshape(shape).cpu().numpy()
    sizes = prefixes.sizes.numpy()
    halvings = len(shorter_lengths(int(sizes.min())))
    edges = band_edges(prefixes.n)
    others = np.ones(high - low, bool)
    others[sinks[(sinks >= low) & (sinks < high)].cpu().numpy() - low] = False
    centred_rows, remaining = [], []
    spans = list(
        zip(prefixes.first.tolist(), (prefixes.final + 1).tolist(), strict=True)
    )
    for index, (first, end) in enumerate(spans):
        here = every[:, index, first - low : end - low]
        centred_rows.append(here - here.mean(-1, keepdims=True))
        rest = here[:, others[first - low : end - low]]
        remaining.append(rest - rest.mean(-1, keepdims=True) if rest.size else rest)
    standard, variances = _standardised(centred_rows, references)
    shapes = _shapes(standard)
    shapes_rest = _shapes(_standardised(remaining, references)[0])
    steps = np.full(shape[0] * shape[1], MULTIPLES[0])
    padded, repeated = _stacked(centred_rows)
    growth = log_means(padded, steps, len(MULTIPLES), repeated)
    growth = growth.reshape(shape[1], shape[0], -1)
    found = []
    for index, (position, (first, end)) in enumerate(
        zip(prefixes.positions.tolist(), spans, strict=True)
    ):
        logits, variance = centred_rows[index], variances[index]
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        correlation = autocorrelation(logits, int(sizes.min()) // 4)
        lengths = shorter_lengths(end - first)[-halvings:]
        found.append(
            Reading(
                standard=standard[index],
                log_mgf=growth[index],
                variance=variance,
                proxy=shapes[0][index],
                tail=shapes[1][index],
                proxy_rest=shapes_rest[0][index],
                tail_rest=shapes_rest[1][index],
                correlation=correlation,
                independent=independent_share(
                    correlation[:, : bandwidth(end - first) + 1], variance
                ),
                early=band_weights(weights, first, edges),
                recent=band_weights(weights[:, ::-1], position + 1 - end, edges),
                moved=doublings(logits, values[first - low : end - low], lengths),
            )
        )
    return found


def _standardised(
    centred_rows: Sequence[Array], references: Array
) -> tuple[list[Array], list[Array]]:
    """Return centred logits over their standard deviation, and their variance."""
    standard, variances = [], []
    for index, logits in enumerate(centred_rows):
        count = max(1, logits.shape[-1])
        variance = np.square(logits).sum(-1) / count
        # what rounding leaves of a logit that does not vary is no variance
        scale = np.square(references[:, index]) + 1
        variance = np.where(variance > 1e-24 * scale, variance, 0)
        deviation = np.sqrt(np.where(variance > 0, variance, 1))[:, None]
        standard.append(np.where(variance[:, None] > 0, logits / deviation, 0))
        variances.append(variance)
    return standard, variances


def _shapes(standard: Sequence[Array]) -> tuple[Array, Array]:
    """Return `proxy_ratio` and `tail_exponents` of each query and head."""
    rows, sizes = _stacked(standard)
    if sizes.min() == 0:
        nothing = np.full((len(standard), len(standard[0])), np.nan)
        return nothing, nothing
    shape = len(standard), -1
    return (
        proxy_ratio(rows, sizes).reshape(shape),
        tail_exponents(rows, sizes).reshape(shape),
    )


def _stacked(queries: Sequence[Array]) -> tuple[Array, NDArray[np.int64]]:
    """Return the rows of all queries one below the other, zeros behind short ones."""
    sizes = np.array([logits.shape[-1] for logits in queries])
    heads = len(queries[0])
    rows = np.zeros((len(queries), heads, max(1, int(sizes.max()))))
    for row, logits in zip(rows, queries, strict=True):
        row[:, : logits.shape[-1]] = logits
    return rows.reshape(len(queries) * heads, -1), np.repeat(sizes, heads)
