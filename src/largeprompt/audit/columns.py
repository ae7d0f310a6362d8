"""The columns of an audit: name, type and meaning, stated once."""

import pyarrow as pa

from largeprompt.audit.columns_beside import BESIDE, Column

COLUMNS = (
    Column("text", pa.string(), "Name of the text that was read."),
    Column("layer", pa.int32(), "Layer of the head, from 0."),
    Column("head", pa.int32(), "Query head within the layer, from 0."),
    Column("kv_head", pa.int32(), "Key/value head that the query head reads."),
    Column("n", pa.int64(), "Prompt length asked for, in tokens."),
    Column(
        "effective_n",
        pa.int64(),
        "Tokens a query sees: min(n, window).",
    ),
    Column(
        "window",
        pa.int64(),
        "Tokens in the head's sliding window, the query's own included; null where it "
        "sees all.",
        nullable=True,
    ),
    Column(
        "queries",
        pa.int32(),
        "Query positions measured, each with what it sees: the last ones up to n; with "
        "a seed, drawn among the last n / 8; spread over all n where attention goes "
        "both ways.",
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
        "query sees kept exact (the nearest where attention goes both ways) and the "
        "rest replaced by its linear limit.",
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
        "held_out_median",
        pa.float64(),
        "Median over queries of the error that limit_error_held_out is the root mean "
        "square of.",
        nullable=True,
    ),
    Column(
        "held_out_low",
        pa.float64(),
        "Lower 95% confidence limit of that median over queries, from order "
        "statistics: for queries drawn independently, whatever their law; null for 5 "
        "queries or fewer.",
        nullable=True,
    ),
    Column(
        "held_out_high",
        pa.float64(),
        "Upper 95% confidence limit of that median.",
        nullable=True,
    ),
    Column(
        "proxy_ratio",
        pa.float64(),
        "Proxy variance of the logits over their variance, within the reach of the "
        "tokens; 1 where they are as sub-Gaussian as a Gaussian. Median over at most 4 "
        "queries, as is everything below but drift.",
        nullable=True,
    ),
    Column(
        "tail_exponent",
        pa.float64(),
        "Exponent a of the tail exp(-r^a) of the logits, fitted to the 2 sqrt(n) "
        "farthest from their median; null below 20 tokens.",
        nullable=True,
    ),
    Column(
        "tail_exponent_law",
        pa.float64(),
        "What the same fit gives on as many Gaussian logits.",
        nullable=True,
    ),
    Column(
        "logit_correlation",
        pa.float64(),
        "Correlation of the logits of neighbouring tokens.",
        nullable=True,
    ),
    Column(
        "independent_tokens",
        pa.float64(),
        "How many independent tokens would leave the same error across the tilt, from "
        "the autocorrelation of the logits up to sqrt(n) tokens apart, to leading "
        "order.",
        nullable=True,
    ),
    Column(
        "drift",
        pa.float64(),
        "Root-mean-square distance of the output over the first half of the tokens "
        "that a query sees from its output over all of them.",
        nullable=True,
    ),
    Column(
        "drift_law",
        pa.float64(),
        "What the exact law predicts for drift if the tokens were independent "
        "Gaussians with the prefix's moments.",
        nullable=True,
    ),
    Column(
        "effective_rank",
        pa.float64(),
        "Participation ratio of the squared singular values of scale Cov(v, k), the "
        "operator of the linear limit, over the tokens that the last query sees.",
        nullable=True,
    ),
    *BESIDE,
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
