"""The numbers and texts that `largeprompt audit` is given, read."""

from collections.abc import Sequence


def read_numbers(text: str | None, what: str) -> list[int] | None:
    """Read numbers such as `0,3-5,9`; None for all of them.

    Raises:
        ValueError: Something between the commas is no number and no range.
    """
    if text is None:
        return None
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(
                f"{what} must be numbers or ranges between commas, such as 0,3-5; "
                f"got {text!r}"
            )
        numbers += range(int(first), int(last if dash else first) + 1)
    return numbers


def limited(lengths: Sequence[int], limit: int | None) -> list[int]:
    """Return the lengths up to a limit.

    Raises:
        ValueError: Every length is longer.
    """
    within = [n for n in lengths if limit is None or n <= limit]
    if not within:
        raise ValueError(
            f"limit must leave a length; got {limit}, and the shortest is "
            f"{min(lengths)}"
        )
    return within
