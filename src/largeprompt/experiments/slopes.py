"""Slopes of log mean square error in log n, with intervals over seeds."""

import dataclasses
import math
import statistics
from collections.abc import Sequence
from typing import final

import numpy as np
from scipy import stats

from largeprompt.experiments.cells import Cell
from largeprompt.experiments.simulation import Quantity
from largeprompt.experiments.token_laws import TokenLaw


@final
@dataclasses.dataclass(frozen=True)
class Slope:
    r"""How the error of one quantity under one token law falls with the length.

    Attributes:
        law: The token law.
        quantity: What the error is of.
        slope: The mean over seeds of the least-squares slope of each.
        low: Lower end of Student's t interval for that mean; seeds are independent.
        high: Its upper end.
        confidence: Of the interval.
        least: The smallest slope of a seed.
        most: The largest.
        exact: The mean slope of the exact law over the same lengths, heads and queries;
            None where no exact law is known.
        asymptotic: The mean over the heads of $-r$, the long-run slope for queries
            $z \sim N(0, I)$; None where it is not known.
    """

    law: str
    quantity: str
    slope: float
    low: float
    high: float
    confidence: float
    least: float
    most: float
    exact: float | None
    asymptotic: float | None


def fit_slopes(cells: Sequence[Cell], confidence: float) -> list[Slope]:
    """Return the slope of every law and quantity among the cells."""
    groups: dict[tuple[TokenLaw, Quantity], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.law, cell.quantity), []).append(cell)
    slopes = []
    for (law, quantity), group in groups.items():
        measured = [log_slope(cell.lengths, cell.mean_square) for cell in group]
        exact = [log_slope(cell.lengths, cell.exact) for cell in group if cell.exact]
        rates = [cell.rate for cell in group if cell.rate is not None]
        low, high = student_interval(measured, confidence)
        slopes.append(
            Slope(
                law=law.value,
                quantity=quantity.value,
                slope=statistics.fmean(measured),
                low=low,
                high=high,
                confidence=confidence,
                least=min(measured),
                most=max(measured),
                exact=statistics.fmean(exact) if exact else None,
                asymptotic=-statistics.fmean(rates)
                if len(rates) == len(group)
                else None,
            )
        )
    return slopes


def log_slope(lengths: Sequence[float], values: Sequence[float]) -> float:
    """Return the least-squares slope of log `values` in log `lengths`.

    Raises:
        ValueError: A value is not positive: it has no logarithm.
    """
    if not min(values) > 0:
        raise ValueError(f"errors must be above 0 to have a slope; got {min(values)}")
    return float(np.polyfit(np.log(lengths), np.log(values), 1)[0])


def student_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Return Student's t interval for the mean of at least two independent values."""
    center = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values))
    reach = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1)) * error
    return center - reach, center + reach
