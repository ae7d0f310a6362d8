"""What a head looks like in curves: the second table of an audit, and what it holds.

One row is one curve of one head: where (`x`), what was measured there, and what
independent Gaussian tokens would give.
"""

import dataclasses
import math
from typing import Any, Literal, TypeAlias, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Scale = Literal["linear", "log"]
Array = NDArray[np.float64]
Curve: TypeAlias = dict[str, Any]
"""A row of the table of profiles without its place."""


@final
@dataclasses.dataclass(frozen=True)
class Profile:
    """One kind of curve.

    Attributes:
        name: Its name in the table.
        title: What it shows, in a few words.
        definition: What was measured, and what the law is, in full.
        x: What the numbers along the axis are.
        y: What the measured numbers are.
        x_scale: How the axis along runs.
        y_scale: How the axis upwards runs.
        beside: What the numbers called the law are.
    """

    name: str
    title: str
    definition: str
    x: str
    y: str
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    beside: str = "law"


@final
@dataclasses.dataclass(frozen=True)
class TokenList:
    """One kind of list of tokens: `x` is their positions, `labels` what they say.

    Attributes:
        name: Its name in the table.
        title: What it shows, in a few words.
        definition: What was measured, in full.
    """

    name: str
    title: str
    definition: str


PROFILES = (
    Profile(
        "qq",
        "Are the logits Gaussian?",
        "Quantiles of the logits, each query's centred and divided by its own standard "
        "deviation, pooled over queries, against those of a standard normal.",
        "standard normal quantile",
        "quantile of the logits",
    ),
    Profile(
        "tail",
        "The upper tail",
        "Share of the logits that are more than so many standard deviations above "
        "their query's mean, pooled over queries, beside that of a Gaussian.",
        "standard deviations above",
        "share of logits",
        y_scale="log",
    ),
    Profile(
        "log_mgf",
        "Growth under the tilt",
        "Median over queries of log mean exp(t (logit - mean)), beside t^2 s^2 / 2 of "
        "Gaussian logits; t = 1 is the head's own softmax.",
        "multiple t of the query",
        "log mean exp of t logits",
    ),
    Profile(
        "spectrum",
        "Spectrum of the limit operator",
        "Singular values of scale Cov(v, k), largest first.",
        "rank",
        "singular value",
        y_scale="log",
    ),
    Profile(
        "keys",
        "Spectrum of the keys",
        "Eigenvalues of the covariance of the keys, largest first, without the sinks; "
        "dashes: before rotary embedding, where the model has one.",
        "rank",
        "variance along the axis",
        y_scale="log",
        beside="before rotary",
    ),
    Profile(
        "sink",
        "Weight by position",
        "Mean over queries of the weight on bands of positions from the start, beside "
        "the band's share of the tokens seen.",
        "position of the band",
        "weight on the band",
        x_scale="log",
        y_scale="log",
    ),
    Profile(
        "recent",
        "Weight by distance",
        "Mean over queries of the weight on bands of distances back from the query, "
        "whose own token has distance 1, beside the band's share of the tokens seen.",
        "distance of the band",
        "weight on the band",
        x_scale="log",
        y_scale="log",
    ),
    Profile(
        "autocorrelation",
        "Neighbours among the tokens",
        "Median over queries of the autocorrelation of the logits along positions; 0 "
        "for independent tokens.",
        "distance in tokens",
        "correlation of the logits",
        x_scale="log",
    ),
    Profile(
        "drift",
        "When the prompt doubles",
        "Root-mean-square distance of the output over n tokens from that over 2n, "
        "relative to the output, beside the exact law.",
        "shorter length n",
        "relative distance",
        x_scale="log",
        y_scale="log",
    ),
)

_SIDES = {
    "key": "whose keys stand out most along the mode's right singular direction: what "
    "a query is read for",
    "value": "whose values stand out most along its left singular direction: what is "
    "answered",
}

TOKEN_LISTS = (
    TokenList(
        "sinks",
        "Sinks",
        "The first four tokens of the text, and the tokens with at least max(5%, 8/n) "
        "of the weight in most of at most 4 queries of a head that reads the same "
        "keys; the numbers are this head's weights on them, the lower median over "
        "these queries.",
    ),
    *(
        TokenList(
            f"{side}_mode_{mode}",
            f"Mode {mode}, {side}s",
            f"Tokens {words}, in standard deviations; mode {mode} of the limit "
            "operator scale Cov(v, k), by singular value.",
        )
        for mode in (1, 2, 3)
        for side, words in _SIDES.items()
    ),
)

PROFILE_SCHEMA = pa.schema(
    [
        pa.field("text", pa.string(), nullable=False),
        pa.field("layer", pa.int32(), nullable=False),
        pa.field("head", pa.int32(), nullable=False),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("profile", pa.string(), nullable=False),
        pa.field("x", pa.list_(pa.float64()), nullable=False),
        pa.field("measured", pa.list_(pa.float64()), nullable=False),
        pa.field("law", pa.list_(pa.float64())),
        pa.field("labels", pa.list_(pa.string())),
    ]
)
"""`measured`, `law` and `labels` have an entry for each of `x`, unless they are null.

`labels` are the tokens in words, in lists of tokens of a text that is known.
"""


def curve_row(name: str, x: Array, measured: Array, law: Array | None) -> Curve:
    """Return a curve as a row of the table, a gap where there is no number."""
    return {
        "profile": name,
        "x": x.tolist(),
        "measured": [None if math.isnan(y) else y for y in measured.tolist()],
        "law": None if law is None else law.tolist(),
        "labels": None,
    }
