"""From the options of `largeprompt concentration` to an experiment."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from largeprompt.cli.arguments import read_lengths
from largeprompt.experiments import (
    PRESETS,
    Concentration,
    GivenHead,
    HeadSource,
    RandomHeads,
    TokenLaw,
)


def experiment_from(
    preset: str,
    *,
    laws: Sequence[str] | None,
    head: Path | None,
    random_head: Mapping[str, Any],
    lengths: str | None,
    numbers: Mapping[str, Any],
) -> Concentration:
    """Return a preset, changed where an option is not None.

    Args:
        preset: The name of the settings to start from.
        laws: Names of token laws.
        head: The file of one head.
        random_head: Fields of `RandomHeads`.
        lengths: Prompt lengths between commas.
        numbers: Fields of `Concentration` that need no reading.

    Raises:
        ValueError: A value is wrong, or `head` stands beside a field of random heads.
    """
    if preset not in PRESETS:
        raise ValueError(f"preset must be {' or '.join(PRESETS)}; got {preset!r}")
    base = PRESETS[preset]
    changes = _given(numbers) | {"heads": _heads(base.heads, head, _given(random_head))}
    if laws:
        changes["laws"] = tuple(_law(name) for name in laws)
    if lengths is not None:
        changes["lengths"] = tuple(read_lengths(lengths))
    return dataclasses.replace(base, **changes)


def _heads(
    base: HeadSource, head: Path | None, changes: Mapping[str, Any]
) -> HeadSource:
    if head is None:
        assert isinstance(base, RandomHeads), "a preset draws its heads"
        return dataclasses.replace(base, **changes)
    if changes:
        raise ValueError(
            "dim and norms must be left out beside the file of a head; "
            f"got {', '.join(changes)}"
        )
    return GivenHead.load(head)


def _law(name: str) -> TokenLaw:
    if name not in [law.value for law in TokenLaw]:
        raise ValueError(f"law must be one of {', '.join(TokenLaw)}; got {name!r}")
    return TokenLaw(name)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
