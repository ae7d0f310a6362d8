"""Which columns the table of heads and the card of a head show, under which titles."""

from typing import TypeAlias

Fields: TypeAlias = dict[str, str]
"""From a column of the audit to its title."""

TABLE: Fields = {
    "layer": "Layer",
    "head": "Head",
    "phase": "Phase",
    "logit_variance": "Logit variance",
    "ess": "ESS",
    "ess_law": "ESS, law",
    "linear_error_in_sample": "Error in sample",
    "linear_error_kept": "Error, kept",
    "limit_error_held_out": "Error held out",
    "limit_error_law": "Held out, law",
    "sink_share": "First four",
    "tokens_needed": "Tokens needed",
    "verdict": "Verdict",
}

TEXTS = frozenset({"phase", "verdict"})
"""The columns of the table that are text; the rest are numbers, aligned right."""

CARD: dict[str, Fields] = {
    "Logits": {
        "logit_variance": "variance",
        "logit_variance_low": "its 10% quantile",
        "logit_variance_high": "its 90% quantile",
        "logit_kurtosis": "excess kurtosis",
        "max_logit": "largest",
    },
    "Weights": {
        "ess": "worth, in tokens",
        "ess_law": "by the exact law",
        "entropy": "entropy (nats)",
        "max_weight": "largest",
        "sink_share": "on the first four tokens",
    },
    "Error of the linear limit": {
        "linear_error_in_sample": "in sample",
        "linear_error_kept": "sinks, recent kept",
        "limit_error_held_out": "held out",
        "limit_error_law": "by the exact law",
        "tokens_needed": "tokens needed",
    },
    "Head": {
        "kv_head": "key/value head",
        "effective_n": "tokens seen",
        "window": "window",
        "queries": "queries measured",
        "output_rms": "size of the output",
        "parity_error": "parity error",
    },
}

BESIDE: dict[str, tuple[tuple[str, str], dict[str, tuple[str, str]]]] = {
    "Without the sinks": (
        ("all tokens", "no sinks"),
        {
            title: (column, f"{column}_without_sinks")
            for column, title in {
                "phase": "phase",
                "logit_variance": "logit variance",
                "logit_kurtosis": "excess kurtosis",
                "proxy_ratio": "proxy variance ratio",
                "tail_exponent": "tail exponent",
                "ess": "worth, in tokens",
                "ess_law": "worth, by the law",
                "max_weight": "largest weight",
                "linear_error_in_sample": "error in sample",
                "linear_error_kept": "sinks, recent kept",
                "limit_error_held_out": "error held out",
                "limit_error_law": "held out, by the law",
                "tokens_needed": "tokens needed",
            }.items()
        },
    ),
    "Keys": (
        ("as read", "before rotary"),
        {
            title: (column, f"{column}_before_rotary")
            for column, title in {
                "key_mean_share": "mean, of the mean square",
                "key_rank": "axes that carry the spread",
                "key_kurtosis": "excess kurtosis (Mardia)",
            }.items()
        },
    ),
}
"""Columns of the card that stand beside one another, under the titles of the two."""
