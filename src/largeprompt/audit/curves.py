"""The curves of a layer's heads (`audit.profiles`), and the columns that sum them up.

They are read from a few of the query positions, spread over those of the audit: sorting
and transforming all logits of a query costs more than summing them.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Float64
from numpy.typing import NDArray
from torch import Tensor

from largeprompt.audit.bands import band_edges
from largeprompt.audit.drift_surface import drift_surface
from largeprompt.audit.growth import shorter_lengths
from largeprompt.audit.logit_shape import (
    MULTIPLES,
    NORMAL_QUANTILES,
    THRESHOLDS,
    gaussian_tail_exponent,
    quantiles,
    shares_above,
)
from largeprompt.audit.logits import Logits
from largeprompt.audit.operator import LARGEST, covariance, effective_rank
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.readings import Reading, read
from largeprompt.audit.statistics import QueryStatistics

Array = NDArray[np.float64]
Curve = dict[str, Any]

PROFILED = 4  # queries
NORMAL_TAILS: Array = np.array([math.erfc(x / math.sqrt(2)) / 2 for x in THRESHOLDS])


@final
@dataclasses.dataclass(frozen=True, eq=False)
class HeadCurves:
    """One head's curves, rows of `audit.profiles` without its place, and columns."""

    curves: list[Curve]
    columns: dict[str, float]


def layer_curves(
    query: Float[Tensor, "h n k"],
    key: Float[Tensor, "hkv n k"],
    value: Float[Tensor, "hkv n v"],
    prefixes: Prefixes,
    statistics: QueryStatistics,
    law: Logits,
) -> list[HeadCurves]:
    """Return the curves of every head of a layer.

    Args:
        query: The queries at every position, as the softmax meets them.
        key: The keys.
        value: The values.
        prefixes: The query positions of the audit, and what each sees.
        statistics: What was measured there.
        law: How a query and a key become a logit.
    """
    chosen = profiled(len(prefixes.positions))
    some = dataclasses.replace(prefixes, positions=prefixes.positions[chosen])
    group = len(query) // len(key)
    found: list[HeadCurves] = []
    for kv in range(len(key)):
        heads = slice(kv * group, (kv + 1) * group)
        readings = list(read(query[heads], key[kv], value[kv], some, law))
        last = slice(int(some.first[-1]), int(some.final[-1]) + 1)
        operator = law.scale * covariance(value[kv, last], key[kv, last])
        spectrum = torch.linalg.svdvals(operator).cpu()
        for member in range(group):
            found.append(
                _curves(
                    readings,
                    member,
                    some,
                    spectrum,
                    _drift_law(statistics, kv * group + member, chosen, some),
                    _root_mean_square(statistics, kv * group + member),
                )
            )
    return found


def profiled(count: int) -> list[int]:
    """Return which of `count` queries the curves are read from: the last among them."""
    kept = min(PROFILED, count)
    return [(count * (i + 1)) // kept - 1 for i in range(kept)]


def _curves(
    readings: Sequence[Reading],
    member: int,
    prefixes: Prefixes,
    spectrum: Float64[Tensor, " r"],
    drift_law: Array,
    size: float,
) -> HeadCurves:
    def each(name: str) -> Array:
        return np.stack([getattr(reading, name)[member] for reading in readings])

    pooled = np.sort(np.concatenate([reading.standard[member] for reading in readings]))
    variance, correlation = each("variance"), each("correlation")
    edges = band_edges(prefixes.n)
    count = int(prefixes.sizes[-1])
    lengths = shorter_lengths(int(prefixes.sizes.min()))
    last_lag = correlation.shape[-1] - 1
    lags = [2**power for power in range(last_lag.bit_length())]
    moved = np.sqrt(each("moved").mean(0)) / size if size > 0 else each("moved")[0]
    predicted = drift_law / size if size > 0 else drift_law
    ranks = np.arange(1.0, min(len(spectrum), LARGEST) + 1)
    above = shares_above(pooled[None])[0]
    curves = [
        _curve("qq", NORMAL_QUANTILES, quantiles(pooled[None])[0], NORMAL_QUANTILES),
        _curve("tail", THRESHOLDS, np.where(above > 0, above, np.nan), NORMAL_TAILS),
        _curve(
            "log_mgf",
            MULTIPLES,
            np.median(each("log_mgf"), 0),
            MULTIPLES**2 * np.median(variance) / 2,
        ),
        _curve("spectrum", ranks, spectrum[: len(ranks)].numpy(), None),
        _bands("sink", edges, [reading.early for reading in readings], member),
        _curve(
            "autocorrelation",
            np.array(lags, float),
            np.median(correlation[:, lags], 0),
            np.zeros(len(lags)),
        ),
        _curve("drift", np.array(lengths, float), moved, predicted),
    ]
    if prefixes.causal:
        bands = [reading.recent for reading in readings]
        curves.append(_bands("recent", edges, bands, member))
    return HeadCurves(
        curves,
        {
            "proxy_ratio": float(np.median(each("proxy"))),
            "tail_exponent": float(np.median(each("tail"))),
            "tail_exponent_law": gaussian_tail_exponent(count),
            "logit_correlation": float(np.median(correlation[:, 1])),
            "independent_tokens": float(np.median(each("independent")) * count),
            "drift": float(moved[-1]),
            "drift_law": float(predicted[-1]),
            "effective_rank": effective_rank(spectrum),
        },
    )


def _curve(name: str, x: Array, measured: Array, law: Array | None) -> Curve:
    return {
        "profile": name,
        "x": x.tolist(),
        "measured": [None if math.isnan(y) else y for y in measured.tolist()],
        "law": None if law is None else law.tolist(),
    }


def _bands(
    name: str, edges: Any, bands: Sequence[tuple[Array, Array]], member: int
) -> Curve:
    """Return the mean over queries; bands that no query sees are left out."""
    weight = np.mean([weights[member] for weights, _ in bands], 0)
    share = np.mean([shares for _, shares in bands], 0)
    seen = share > 0
    return _curve(name, (edges[:-1] + 1.0)[seen], weight[seen], share[seen])


def _drift_law(
    statistics: QueryStatistics, head: int, chosen: list[int], prefixes: Prefixes
) -> Array:
    """Return the law's root mean square movement at each doubling."""
    variance, response, spread = (
        getattr(statistics, name)[head, chosen].numpy()
        for name in ("logit_variance", "response", "value_variance")
    )
    lengths = shorter_lengths(int(prefixes.sizes.min()))
    squares = drift_surface().mean_square(
        np.array(lengths)[:, None], variance, response, spread
    )
    return np.sqrt(squares.mean(-1))


def _root_mean_square(statistics: QueryStatistics, head: int) -> float:
    """Return the size of the head's output, over all queries of the audit."""
    return float(statistics.output[head].square().sum(-1).mean().sqrt())
