"""The statistics of one query again: covariance matrices and SciPy, one at a time."""

import math

import numpy as np
from scipy import special, stats


def limit(logits, keys, values, query):
    """Log-mass and output of Gaussian tokens, by way of the joint covariance matrix."""
    width = keys.shape[1]
    joint = np.cov(np.hstack([keys, values]).T, bias=True)
    variance = query @ joint[:width, :width] @ query
    log_mass = math.log(len(keys)) + logits.mean() + variance / 2
    return log_mass, values.mean(0) + joint[width:, :width] @ query


def attention(logits, values):
    return special.logsumexp(logits), special.softmax(logits) @ values


def statistics(query, key, value, position, *, scale, window, without=()):
    """Return what the audit measures for the query at `position`, by name.

    Tokens `without` are none; their weight, were they some, is the share of the sinks.
    """
    first = 0 if window is None else max(0, position - window + 1)
    tokens = np.arange(first, position + 1)
    recent = min(256, len(tokens) // 8)
    query = scale * query
    everywhere = special.softmax(key[tokens] @ query)
    sinks = tokens < 4 if len(without) == 0 else np.isin(tokens, without)
    sink_share = everywhere[sinks].sum()
    tokens = tokens[~np.isin(tokens, without)]
    keys, values = key[tokens], value[tokens]
    logits = keys @ query
    weights = special.softmax(logits)
    output = weights @ values
    covariance = np.cov(np.hstack([keys, values]).T, bias=True)
    width = key.shape[1]
    response = covariance[width:, :width] @ query

    exact = (tokens < first + 4) | (tokens > position - recent)
    log_kept, kept = attention(logits[exact], values[exact])
    log_bulk, bulk = limit(logits[~exact], keys[~exact], values[~exact], query)
    shares = special.softmax([log_kept, log_bulk])
    even = tokens % 2 == 0
    _, attended = attention(logits[even], values[even])
    _, held_out = limit(logits[~even], keys[~even], values[~even], query)
    _, in_sample = limit(logits, keys, values, query)
    return {
        "logit_variance": logits.var(),
        "logit_kurtosis": stats.kurtosis(logits),
        "inverse_ess": (weights**2).sum(),
        "entropy": stats.entropy(weights),
        "max_weight": weights.max(),
        "max_logit": logits.max(),
        "sink_share": sink_share,
        "attended": float(even.sum()),
        "moments": float((~even).sum()),
        "response": response @ response,
        "value_variance": np.trace(covariance[width:, width:]),
        "in_sample": ((in_sample - output) ** 2).sum(),
        "kept": ((shares[0] * kept + shares[1] * bulk - output) ** 2).sum(),
        "held_out": ((held_out - attended) ** 2).sum(),
        "output": output,
    }
