"""The curves of a layer's heads (`audit.profiles`), and the columns that sum them up.

They are read from a few of the query positions, spread over those of the audit: sorting
and transforming all logits of a query costs more than summing them.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from largeprompt.audit.bands import band_edges
from largeprompt.audit.drift_surface import drift_surface
from largeprompt.audit.growth import shorter_lengths
from largeprompt.audit.kv_group import Group, kv_group
from largeprompt.audit.logit_shape import (
    MULTIPLES,
    NORMAL_QUANTILES,
    THRESHOLDS,
    gaussian_tail_exponent,
    quantiles,
    shares_above,
)
from largeprompt.audit.logits import Logits
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.profiles import Curve, curve_row
from largeprompt.audit.sinks import Sinks
from largeprompt.audit.statistics import QueryStatistics

Array = NDArray[np.float64]

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
    found: Sequence[Sinks],
    before: Float[Tensor, "hkv n k"] | None = None,
    *,
    drawn: bool = True,
) -> list[HeadCurves]:
    """Return the curves of every head of a layer.

    Args:
        query: The queries at every position, as the softmax meets them.
        key: The keys.
        value: The values.
        prefixes: The query positions of the audit, and what each sees.
        statistics: What was measured there.
        law: How a query and a key become a logit.
        found: The sinks of each key/value head.
        before: The keys before rotary embedding, where there is one.
        drawn: Whether curves are wanted, or columns alone.
    """
    chosen = profiled(len(prefixes.positions))
    some = prefixes.at(chosen)
    heads = len(query) // len(key)
    answers: list[HeadCurves] = []
    for kv, sinks in enumerate(found):
        group = kv_group(
            query[kv * heads : (kv + 1) * heads],
            key[kv],
            value[kv],
            None if before is None else before[kv],
            some,
            law,
            sinks,
            drawn=drawn,
        )
        for member in range(heads):
            predicted = _drift_law(statistics, kv * heads + member, chosen, some)
            size = _root_mean_square(statistics, kv * heads + member)
            columns, moved = _columns(group, member, some, predicted, size)
            curves = group.curves
            if drawn:
                curves = curves + _curves(group, member, some, moved, sinks)
            answers.append(HeadCurves(curves, group.columns | columns))
    return answers


def profiled(count: int) -> list[int]:
    """Return which of `count` queries the curves are read from: the last among them."""
    kept = min(PROFILED, count)
    return [(count * (i + 1)) // kept - 1 for i in range(kept)]


def _each(group: Group, name: str, member: int) -> Array:
    return np.stack([getattr(reading, name)[member] for reading in group.readings])


def _columns(
    group: Group, member: int, prefixes: Prefixes, drift_law: Array, size: float
) -> tuple[dict[str, float], tuple[Array, Array]]:
    """Return a head's columns, and how far its output moves, beside the law."""
    correlation = _each(group, "correlation", member)
    count = int(prefixes.sizes[-1])
    squares = _each(group, "moved", member)
    moved = np.sqrt(squares.mean(0)) / size if size > 0 else squares[0]
    predicted = drift_law / size if size > 0 else drift_law
    medians = {
        name: float(np.median(_each(group, field, member)))
        for name, field in (
            ("proxy_ratio", "proxy"),
            ("tail_exponent", "tail"),
            ("proxy_ratio_without_sinks", "proxy_rest"),
            ("tail_exponent_without_sinks", "tail_rest"),
        )
    }
    columns = {
        **medians,
        "tail_exponent_law": gaussian_tail_exponent(count),
        "logit_correlation": float(np.median(correlation[:, 1])),
        "independent_tokens": float(
            np.median(_each(group, "independent", member)) * count
        ),
        "drift": float(moved[-1]),
        "drift_law": float(predicted[-1]),
    }
    return columns, (moved, predicted)


def _curves(
    group: Group,
    member: int,
    prefixes: Prefixes,
    moved: tuple[Array, Array],
    sinks: Sinks,
) -> list[Curve]:
    readings = group.readings
    pooled = np.sort(np.concatenate([reading.standard[member] for reading in readings]))
    variance, correlation = (
        _each(group, x, member) for x in ("variance", "correlation")
    )
    edges = band_edges(prefixes.n)
    lengths = shorter_lengths(int(prefixes.sizes.min()))
    last_lag = correlation.shape[-1] - 1
    lags = [2**power for power in range(last_lag.bit_length())]
    above = shares_above(pooled[None])[0]
    curves = [
        curve_row("qq", NORMAL_QUANTILES, quantiles(pooled[None])[0], NORMAL_QUANTILES),
        curve_row("tail", THRESHOLDS, np.where(above > 0, above, np.nan), NORMAL_TAILS),
        curve_row(
            "log_mgf",
            MULTIPLES,
            np.median(_each(group, "log_mgf", member), 0),
            MULTIPLES**2 * np.median(variance) / 2,
        ),
        _bands("sink", edges, [reading.early for reading in readings], member),
        curve_row(
            "autocorrelation",
            np.array(lags, float),
            np.median(correlation[:, lags], 0),
            np.zeros(len(lags)),
        ),
        curve_row("drift", np.array(lengths, float), *moved),
        curve_row(
            "sinks",
            sinks.tokens.double().cpu().numpy(),
            sinks.weight[member].cpu().numpy(),
            None,
        ),
    ]
    if prefixes.causal:
        bands = [reading.recent for reading in readings]
        curves.append(_bands("recent", edges, bands, member))
    return curves


def _bands(
    name: str, edges: Any, bands: Sequence[tuple[Array, Array]], member: int
) -> Curve:
    """Return the mean over queries; bands that no query sees are left out."""
    weight = np.mean([weights[member] for weights, _ in bands], 0)
    share = np.mean([shares for _, shares in bands], 0)
    seen = share > 0
    return curve_row(name, (edges[:-1] + 1.0)[seen], weight[seen], share[seen])


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
