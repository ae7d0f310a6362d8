"""A few queries read in full: what needs every logit of a query at once."""

import dataclasses
from collections.abc import Iterator
from typing import final

import numpy as np
from jaxtyping import Float
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
    r"""The heads of a group at one query: standardised logits and what is made of them.

    Arrays have one row a head.

    Attributes:
        standard: The logits less their mean, over their standard deviation; 0 where
            they do not vary.
        log_mgf: `log_means` at `MULTIPLES` of the query.
        variance: $s^2$.
        proxy: `proxy_ratio`.
        tail: `tail_exponents`.
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
) -> Iterator[Reading]:
    """Yield what a group of heads makes of each query, one after the other.

    Args:
        query: The queries of the heads that read one key/value head.
        key: Its keys.
        value: Its values.
        prefixes: The query positions to read, and what each sees.
        law: How a query and a key become a logit.
    """
    low, high = int(prefixes.first.min()), int(prefixes.final.max()) + 1
    values = value[low:high].double().cpu().numpy()
    rows = query[:, prefixes.positions].double().flatten(0, 1)[None]
    block = centred(rows, key[None, low:high].double(), law)
    shape = (len(query), len(prefixes.positions))
    every = block(slice(None))[0].reshape(*shape, -1).cpu().numpy()
    references = block.reference[0].reshape(shape).cpu().numpy()
    sizes = prefixes.sizes.tolist()
    halvings = len(shorter_lengths(min(sizes)))
    edges = band_edges(prefixes.n)
    for index, (position, first, end) in enumerate(
        zip(
            prefixes.positions.tolist(),
            prefixes.first.tolist(),
            (prefixes.final + 1).tolist(),
            strict=True,
        )
    ):
        tokens = slice(first - low, end - low)
        logits = every[:, index, tokens]
        logits = logits - logits.mean(-1, keepdims=True)
        variance = np.square(logits).mean(-1)
        # what rounding leaves of a logit that does not vary is no variance
        scale = np.square(references[:, index]) + 1
        variance = np.where(variance > 1e-24 * scale, variance, 0)
        deviation = np.sqrt(np.where(variance > 0, variance, 1))[:, None]
        standard = np.where(variance[:, None] > 0, logits / deviation, 0)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        correlation = autocorrelation(logits, min(sizes) // 4)
        lengths = shorter_lengths(end - first)[-halvings:]
        yield Reading(
            standard=standard,
            log_mgf=log_means(
                logits, np.full(len(logits), MULTIPLES[0]), len(MULTIPLES)
            ),
            variance=variance,
            proxy=proxy_ratio(standard),
            tail=tail_exponents(standard),
            correlation=correlation,
            independent=independent_share(
                correlation[:, : bandwidth(end - first) + 1], variance
            ),
            early=band_weights(weights, first, edges),
            recent=band_weights(weights[:, ::-1], position + 1 - end, edges),
            moved=doublings(logits, values[tokens], lengths),
        )
