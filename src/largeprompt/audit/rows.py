"""Per-query statistics of a layer -> one row of the table per head."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from largeprompt.audit.curves import HeadCurves
from largeprompt.audit.intervals import median_interval
from largeprompt.audit.prediction import held_out_mean_square, tokens_needed
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.statistics import QueryStatistics, concatenate
from largeprompt.audit.surface import LawSurface
from largeprompt.audit.verdict import Evidence, failed_assumption, verdict
from largeprompt.laws.phases import phase

Array = NDArray[np.float64]
Row = dict[str, Any]

FEWEST = 2  # even tokens, and odd ones, that a head without its sinks must read
WITHOUT_SINKS = (
    "logit_variance",
    "logit_kurtosis",
    "ess",
    "ess_law",
    "max_weight",
    "output_rms",
    "linear_error_in_sample",
    "linear_error_kept",
    "limit_error_held_out",
    "limit_error_law",
)
JUDGED = ("phase", "tokens_needed", "verdict", "failed_assumption")
"""The columns that are there a second time, of the tokens that are no sinks."""


def head_rows(
    statistics: QueryStatistics,
    rest: QueryStatistics,
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
        rest: The same without the sinks.
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
    seen = np.full(len(heads), prefixes.effective_n)
    left_out = np.array([int(each.columns["sinks"]) for each in curves])
    both = _columns(
        concatenate([statistics, rest], dim=0),
        np.concatenate([seen, seen - left_out]),
        law,
        eps,
    )
    columns = {name: column[: len(heads)] for name, column in both.items()}
    others = {name: column[len(heads) :] for name, column in both.items()}
    fewest = torch.minimum(rest.attended, rest.moments).amin(-1)
    rows = []
    for index, head in enumerate(heads):
        own = {name: float(column[index]) for name, column in columns.items()}
        evidence = _evidence(own, prefixes.effective_n, eps)
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
                **own,
                **_spreads(statistics, index, own["output_rms"]),
                **{name: _number(x) for name, x in curves[index].columns.items()},
                "sinks": int(left_out[index]),
                "curves": curves[index].curves,
                **_judged(own, evidence),
                **_without_sinks(
                    {name: float(column[index]) for name, column in others.items()},
                    int(seen[index] - left_out[index]),
                    eps,
                    enough=bool(fewest[index] >= FEWEST),
                ),
                "left_out_share": float(rest.sink_share[index].mean()),
                "parity_error": parity_errors[index] if parity_errors else None,
            }
        )
    return rows


def _judged(own: dict[str, float], evidence: Evidence) -> Row:
    """Return what is said of a head."""
    return {
        "phase": str(evidence.phase),
        "tokens_needed": _number(own["tokens_needed"]),
        "verdict": verdict(evidence),
        "failed_assumption": str(failed_assumption(evidence)),
    }


def _without_sinks(
    own: dict[str, float], effective_n: int, eps: float, *, enough: bool
) -> Row:
    """Return a head's numbers without its sinks; None where too few tokens are left."""
    told = {name: own[name] for name in WITHOUT_SINKS}
    row: Row = dict.fromkeys((*told, *JUDGED))
    if enough and all(math.isfinite(x) for x in told.values()):
        row = told | _judged(own, _evidence(own, effective_n, eps))
    return {f"{name}_without_sinks": value for name, value in row.items()}


def _evidence(own: dict[str, float], effective_n: int, eps: float) -> Evidence:
    return Evidence(
        effective_n=effective_n,
        eps=eps,
        phase=phase(effective_n, own["logit_variance"]),
        logit_variance=own["logit_variance"],
        logit_kurtosis=own["logit_kurtosis"],
        ess=own["ess"],
        in_sample=own["linear_error_in_sample"],
        kept=own["linear_error_kept"],
        held_out=own["limit_error_held_out"],
        law=own["limit_error_law"],
        tokens_needed=_number(own["tokens_needed"]),
    )


def _columns(
    statistics: QueryStatistics,
    effective_n: NDArray[np.int64],
    law: LawSurface,
    eps: float,
) -> dict[str, Array]:
    """Return the numeric columns, one value a head: summaries over the queries."""
    logit_variance, response, value_variance, attended, moments = (
        getattr(statistics, name).numpy()
        for name in (
            "logit_variance",
            "response",
            "value_variance",
            "attended",
            "moments",
        )
    )
    median = np.median(logit_variance, -1)
    low, high = np.quantile(logit_variance, [0.1, 0.9], axis=-1)
    squares = _square_norms(statistics)
    rms = np.sqrt(squares.mean(-1))
    # a query that sees no even or no odd token has no error, and the law none for it
    predicted = held_out_mean_square(
        law(np.maximum(attended, 1), logit_variance),
        np.maximum(moments, 1),
        response,
        value_variance,
    )
    return {
        "logit_variance": median,
        "logit_variance_low": low,
        "logit_variance_high": high,
        "logit_kurtosis": np.median(statistics.logit_kurtosis.numpy(), -1),
        "ess": np.median(1 / statistics.inverse_ess.numpy(), -1),
        "ess_law": law(np.maximum(effective_n, 1), median).ess,
        "entropy": np.median(statistics.entropy.numpy(), -1),
        "max_weight": np.median(statistics.max_weight.numpy(), -1),
        "max_logit": statistics.max_logit.numpy().max(-1),
        "sink_share": statistics.sink_share.numpy().mean(-1),
        "output_rms": rms,
        "linear_error_in_sample": _relative(statistics.in_sample.numpy(), rms),
        "linear_error_kept": _relative(statistics.kept.numpy(), rms),
        "limit_error_held_out": _relative(statistics.held_out.numpy(), rms),
        "limit_error_law": _relative(predicted, rms),
        "tokens_needed": tokens_needed(
            law,
            median,
            np.median(response, -1),
            np.median(value_variance, -1),
            eps**2 * np.median(squares, -1),
        ),
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
