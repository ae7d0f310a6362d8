"""The free parameters of a bound: any value proves it, the best is searched for."""

import math
from collections.abc import Callable

GOLDEN = (math.sqrt(5) - 1) / 2
TURNS = 60  # the bracket shrinks by GOLDEN a turn: 3e-13 of its length remains


def minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the smallest value of a unimodal function inside (`low`, `high`).

    Golden-section search. A search that stops short of the minimum costs a bound its
    tightness, never its truth.
    """
    span = high - low
    left, right = high - GOLDEN * span, low + GOLDEN * span
    at_left, at_right = function(left), function(right)
    for _ in range(TURNS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
    return min(at_left, at_right)
