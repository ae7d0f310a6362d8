"""What commands share in reading their arguments."""

import contextlib
from collections.abc import Iterator

import typer


@contextlib.contextmanager
def wrong_arguments() -> Iterator[None]:
    """Turn a refusal of a value inside into a usage error, exit status 2."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(printable(str(error))) from error


def printable(text: str) -> str:
    """Return a text without what moves a terminal's cursor or changes its colours."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def read_lengths(text: str) -> list[int]:
    """Read prompt lengths such as `256,512,1024`.

    Raises:
        ValueError: Something between the commas is no whole number.
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"lengths must be whole numbers between commas; got {text!r}"
        ) from None
