"""Numbers as people read them; assets/report.js holds the same rule for the browser."""

import decimal
import math
from typing import Any


def show(value: Any) -> str:
    """Return a value as text: three significant digits, whole numbers in full.

    From ten million on, and below a thousandth, in the form 1.23e9; nothing is a dash,
    a truth is yes or no.
    """
    if value is None or value == "":
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    if value == int(value) and size < 1e7:
        return f"{int(value):,}"
    with decimal.localcontext() as context:  # ties go up, as in browsers
        context.rounding = decimal.ROUND_HALF_UP
        if not 1e-3 <= size < 1e7:
            mantissa, exponent = f"{decimal.Decimal(float(value)):.2e}".split("e")
            return f"{mantissa}e{int(exponent)}"
        places = max(0, 2 - math.floor(math.log10(size)))
        written = decimal.Decimal(repr(float(value)))  # they round what stands written
        return f"{written:,.{places}f}"


def percent(share: float) -> str:
    """Return a share in percent, with one decimal while it is below ten."""
    return f"{100 * share:.{1 if share < 0.0995 else 0}f}%"


def of_the_output(error: float) -> str:
    """Return a relative error in words: 48% of the output, 12.3 times the output."""
    size = percent(error) + " of" if error < 10 else show(error) + " times"
    return f"{size} the output"


def count(number: int, noun: str = "head") -> str:
    """Return a number with its noun, singular or plural."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
