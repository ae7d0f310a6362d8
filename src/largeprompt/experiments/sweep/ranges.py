"""The values of an axis: a list, or a range with a step or a factor."""

from collections.abc import Mapping
from typing import Any

from largeprompt.experiments.sweep.options import check_known

ENDS = ("from", "to", "step", "factor")
MOST = 10**6  # values of one axis: beyond is a slip


def axis_values(name: str, values: Any) -> list[Any]:
    """Return the values of an axis of the grid.

    Args:
        name: The option.
        values: A list, or a table `{from = 16, to = 1024, factor = 2}` with both ends
            included; with neither `step` nor `factor` the step is 1.

    Raises:
        ValueError: It is neither, or holds no value.
    """
    if isinstance(values, Mapping):
        return _spanned(name, values)
    if not isinstance(values, list) or not values:
        raise ValueError(
            f"{name} in the grid must be a list of values, or a table such as "
            f"{{from = 0, to = 9}}; got {values!r}"
        )
    return values


def _spanned(name: str, span: Mapping[str, Any]) -> list[int | float]:
    for part in span:
        check_known(f"a part of the range of {name}", part, ENDS)
    for part, value in span.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{part} of {name} must be a number; got {value!r}")
    if not {"from", "to"} <= set(span) or {"step", "factor"} <= set(span):
        raise ValueError(
            f"the range of {name} must have from and to, and step or factor, not both; "
            f"got {', '.join(span)}"
        )
    first, last = span["from"], span["to"]
    factor, step = span.get("factor"), span.get("step", 1)
    growing = step > 0 if factor is None else factor > 1 and first > 0
    if not growing or last < first:
        raise ValueError(
            f"the range of {name} must grow: step above 0, or factor above 1 from "
            f"above 0; got {dict(span)}"
        )
    values: list[int | float] = []
    while (value := _member(first, step, factor, len(values))) <= last:
        values.append(value)
        if len(values) > MOST:
            raise ValueError(f"the range of {name} must have at most {MOST:,} values")
    return values


def _member(
    first: int | float, step: int | float, factor: int | float | None, index: int
) -> int | float:
    return first + step * index if factor is None else first * factor**index
