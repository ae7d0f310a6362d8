"""Per-query statistics of a layer -> one row of the table per head."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from largeprompt.audit.prediction import predicted_held_out, tokens_needed
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.statistics import QueryStatistics
from largeprompt.audit.surface import LawSurface
from largeprompt.audit.verdict import Evidence, failed_assumption, verdict
from largeprompt.laws.phases import phase

Array = NDArray[np.float64]
Row = dict[str, Any]


def head_rows(
    statistics: QueryStatistics,
    prefixes: Prefixes,
    law: LawSurface,
    *,
    layer: int,
    kv_heads: int,
    eps: float,
    parity_errors: Sequence[float] | None,
) -> list[Row]:
    """Return the rows of one layer at one length, a dictionary per head.

    Args:
        statistics: What was measured.
        prefixes: At which positions, and what each sees.
        law: The exact law of Gaussian tokens.
        layer: The layer's number.
        kv_heads: The number of key/value heads.
        eps: The relative error that `tokens_needed` and the verdict ask for.
        parity_errors: One a head, or None where there is no model to compare with.
    """
    columns = _columns(statistics, prefixes, law)
    response = np.median(statistics.response.numpy(), -1)
    variance = np.median(statistics.value_variance.numpy(), -1)
    target = eps**2 * np.median(_square_norms(statistics), -1)
    heads = len(target)
    rows = []
    for head in range(heads):
        measured = {name: float(column[head]) for name, column in columns.items()}
        needed = tokens_needed(
            law,
            measured["logit_variance"],
            float(response[head]),
            float(variance[head]),
            float(target[head]),
        )
        evidence = Evidence(
            effective_n=prefixes.effective_n,
            eps=eps,
            phase=phase(prefixes.effective_n, measured["logit_variance"]),
            logit_variance=measured["logit_variance"],
            logit_kurtosis=measured["logit_kurtosis"],
            ess=measured["ess"],
            in_sample=measured["linear_error_in_sample"],
            kept=measured["linear_error_kept"],
            held_out=measured["limit_error_held_out"],
            law=measured["limit_error_law"],
            tokens_needed=needed,
        )
        rows.append(
            {
                "layer": layer,
                "head": head,
                "kv_head": head * kv_heads // heads,
                "n": prefixes.n,
                "effective_n": prefixes.effective_n,
                "window": prefixes.window,
                "queries": len(prefixes.positions),
                **measured,
                "phase": str(evidence.phase),
                "tokens_needed": needed,
                "verdict": verdict(evidence),
                "failed_assumption": str(failed_assumption(evidence)),
                "parity_error": parity_errors[head] if parity_errors else None,
            }
        )
    return rows


def _columns(
    statistics: QueryStatistics, prefixes: Prefixes, law: LawSurface
) -> dict[str, Array]:
    """Return the numeric columns, one value a head: summaries over the queries."""
    logit_variance = statistics.logit_variance.numpy()
    median = np.median(logit_variance, -1)
    low, high = np.quantile(logit_variance, [0.1, 0.9], axis=-1)
    rms = np.sqrt(_square_norms(statistics).mean(-1))
    predicted = predicted_held_out(
        law,
        prefixes,
        logit_variance,
        statistics.response.numpy(),
        statistics.value_variance.numpy(),
    )
    return {
        "logit_variance": median,
        "logit_variance_low": low,
        "logit_variance_high": high,
        "logit_kurtosis": np.median(statistics.logit_kurtosis.numpy(), -1),
        "ess": np.median(1 / statistics.inverse_ess.numpy(), -1),
        "ess_law": law(prefixes.effective_n, median).ess,
        "entropy": np.median(statistics.entropy.numpy(), -1),
        "max_weight": np.median(statistics.max_weight.numpy(), -1),
        "max_logit": statistics.max_logit.numpy().max(-1),
        "sink_share": statistics.sink_share.numpy().mean(-1),
        "output_rms": rms,
        "linear_error_in_sample": _relative(statistics.in_sample.numpy(), rms),
        "linear_error_kept": _relative(statistics.kept.numpy(), rms),
        "limit_error_held_out": _relative(statistics.held_out.numpy(), rms),
        "limit_error_law": _relative(predicted, rms),
    }


def _square_norms(statistics: QueryStatistics) -> Array:
    """Return the squared norm of each head's output, `h x m`."""
    return statistics.output.square().sum(-1).numpy()


def _relative(squares: Array, rms: Array) -> Array:
    """Return root mean squares over queries, relative to `rms`; 0/0 is no error."""
    errors = np.sqrt(squares.mean(-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(errors > 0, errors / rms, 0.0)
