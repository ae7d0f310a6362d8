"""How `largeprompt compress-eval` reads its arguments."""


def read_shares(text: str, name: str) -> tuple[float, ...]:
    """Read numbers such as `0.05,0.1`; none from an empty text.

    Raises:
        ValueError: Something between the commas is no number.
    """
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise ValueError(
            f"{name} must be numbers between commas; got {text!r}"
        ) from None


def read_names(text: str) -> list[str]:
    """Read names such as `calibrated,snapkv`, each once, in their order."""
    return list(dict.fromkeys(part.strip() for part in text.split(",")))
