"""Per-query statistics of a layer -> one row of the table per head."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from largeprompt.audit.curves import HeadCurves
from largeprompt.audit.intervals import median_interval
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
    curves: Sequence[HeadCurves],
    prefixes: Prefixes,
    law: LawSurface,
    *,
    layer: int,
    heads: Sequence[int],
    group: int,
    eps: float,
    text: str,
    parity_errors: Sequence[float] | None,
) -> list[Row]:
    """Return the rows of one layer at one length, a dictionary per head.

    Args:
        statistics: What was measured.
        curves: The curves of each query head measured.
        prefixes: At which positions, and what each sees.
        law: The exact law of Gaussian tokens.
        layer: The layer's number.
        heads: The number of each query head measured.
        group: How many query heads read one key/value head.
        eps: The relative error that `tokens_needed` and the verdict ask for.
        text: The name of the text.
        parity_errors: One a head, or None where there is no model to compare with.
    """
    columns = _columns(statistics, prefixes, law)
    needed = tokens_needed(
        law,
        columns["logit_variance"],
        np.median(statistics.response.numpy(), -1),
        np.median(statistics.value_variance.numpy(), -1),
        eps**2 * np.median(_square_norms(statistics), -1),
    )
    rows = []
    for index, head in enumerate(heads):
        measured = {name: float(column[index]) for name, column in columns.items()}
        tokens = None if math.isnan(needed[index]) else float(needed[index])
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
            tokens_needed=tokens,
        )
        rows.append(
            {
                "text": text,
                "layer": layer,
                "head": head,
                "kv_head": head // group,
                "n": prefixes.n,
                "effective_n": prefixes.effective_n,
                "window": prefixes.window,
                "queries": len(prefixes.positions),
                **measured,
                **_spreads(statistics, index, measured["output_rms"]),
                **{name: _number(x) for name, x in curves[index].columns.items()},
                "curves": curves[index].curves,
                "phase": str(evidence.phase),
                "tokens_needed": tokens,
                "verdict": verdict(evidence),
                "failed_assumption": str(failed_assumption(evidence)),
                "parity_error": parity_errors[index] if parity_errors else None,
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


def _spreads(
    statistics: QueryStatistics, index: int, rms: float
) -> dict[str, float | None]:
    """Return the median held-out error over queries, and its confidence limits."""
    errors = np.sqrt(statistics.held_out[index].numpy())
    low, high = median_interval(errors)
    found = {"median": np.median(errors), "low": low, "high": high}
    return {
        f"held_out_{name}": _number(float(x) / rms if rms > 0 else math.nan)
        for name, x in found.items()
    }


def _number(x: float) -> float | None:
    return None if math.isnan(x) else x


def _square_norms(statistics: QueryStatistics) -> Array:
    """Return the squared norm of each head's output, `h x m`."""
    return statistics.output.square().sum(-1).numpy()


def _relative(squares: Array, rms: Array) -> Array:
    """Return root mean squares over queries, relative to `rms`; 0/0 is no error."""
    errors = np.sqrt(squares.mean(-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(errors > 0, errors / rms, 0.0)
