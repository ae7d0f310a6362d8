"""The columns of an audit: name, type and meaning, stated once."""

import dataclasses
from typing import final

import pyarrow as pa


@final
@dataclasses.dataclass(frozen=True)
class Column:
    """One column of the table of heads."""

    name: str
    type: pa.DataType
    definition: str
    nullable: bool = False


COLUMNS = (
    Column("layer", pa.int32(), "Layer of the head, from 0."),
    Column("head", pa.int32(), "Query head within the layer, from 0."),
    Column("kv_head", pa.int32(), "Key/value head that the query head reads."),
    Column("n", pa.int64(), "Prompt length asked for, in tokens."),
    Column(
        "effective_n",
        pa.int64(),
        "Tokens the last query sees: min(n, window).",
    ),
    Column(
        "window",
        pa.int64(),
        "Width of the head's sliding window, itself included; null where it sees all.",
        nullable=True,
    ),
    Column(
        "queries",
        pa.int32(),
        "Query positions measured: the last ones up to n, each with its own prefix.",
    ),
    Column(
        "logit_variance",
        pa.float64(),
        "Median over queries of the variance of the logits over the query's prefix.",
    ),
    Column(
        "logit_variance_low",
        pa.float64(),
        "10% quantile over queries of the variance of the logits.",
    ),
    Column(
        "logit_variance_high",
        pa.float64(),
        "90% quantile over queries of the variance of the logits.",
    ),
    Column(
        "logit_kurtosis",
        pa.float64(),
        "Median over queries of the excess kurtosis of the logits; 0 for a Gaussian.",
    ),
    Column(
        "ess",
        pa.float64(),
        "Median over queries of the effective sample size 1 / sum of squared weights.",
    ),
    Column(
        "ess_law",
        pa.float64(),
        "1 / E[sum of squared weights] of effective_n Gaussian tokens with the median "
        "logit variance (exact law).",
    ),
    Column(
        "entropy",
        pa.float64(),
        "Median over queries of the entropy of the weights, in nats.",
    ),
    Column("max_weight", pa.float64(), "Median over queries of the largest weight."),
    Column("max_logit", pa.float64(), "Largest logit over queries and prefixes."),
    Column(
        "sink_share",
        pa.float64(),
        "Mean over queries of the weight on the first four tokens of the text.",
    ),
    Column(
        "output_rms",
        pa.float64(),
        "Root mean square over queries of the norm of the head's output; every error "
        "below is relative to it.",
    ),
    Column(
        "linear_error_in_sample",
        pa.float64(),
        "Root-mean-square error of the linear limit with the moments of the same "
        "tokens.",
    ),
    Column(
        "linear_error_kept",
        pa.float64(),
        "The same with the first 4 and the last min(256, effective_n / 8) tokens the "
        "query sees kept exact and the rest replaced by its linear limit.",
    ),
    Column(
        "limit_error_held_out",
        pa.float64(),
        "Root-mean-square difference between attention over tokens 0, 2, 4, ... and "
        "the linear limit with the moments of tokens 1, 3, 5, ...",
    ),
    Column(
        "limit_error_law",
        pa.float64(),
        "What the exact law predicts for limit_error_held_out if the tokens were "
        "independent Gaussians with the prefix's moments.",
    ),
    Column(
        "phase",
        pa.string(),
        "linear, heavy-tailed or frozen, from effective_n and the median logit "
        "variance.",
    ),
    Column(
        "tokens_needed",
        pa.float64(),
        "Smallest n at which the exact law's error of the linear limit is at most eps, "
        "logit variance and moments held at their medians over queries; null above "
        "1e15.",
        nullable=True,
    ),
    Column("verdict", pa.string(), "What is true of the head, in a sentence."),
    Column(
        "failed_assumption",
        pa.string(),
        "The assumption of the linear limit that fails first; empty when none does.",
    ),
    Column(
        "parity_error",
        pa.float64(),
        "Relative error of the head's output recomputed in float64 against the "
        "model's own; null where there is no model.",
        nullable=True,
    ),
)

SCHEMA = pa.schema(
    [pa.field(column.name, column.type, column.nullable) for column in COLUMNS]
)
