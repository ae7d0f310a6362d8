"""From the values of a specification to an experiment, with what is wrong said."""

import dataclasses
import difflib
import functools
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from largeprompt.experiments.sweep.experiment import Experiment

WORDS = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    tuple[int, ...]: "a list of whole numbers",
}


def check_known(kind: str, name: str, known: Iterable[str]) -> None:
    """Raise a ValueError that names the nearest, unless the name is known."""
    names = list(known)
    if name not in names:
        nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.0)[0]
        raise ValueError(
            f"{kind} must be one of {', '.join(names)}; "
            f"got {name!r}; the nearest is {nearest!r}"
        )


def check_least(experiment: Experiment, **least: float) -> None:
    """Raise a ValueError unless the fields are at least so large."""
    for name, bound in least.items():
        if not (value := getattr(experiment, name)) >= bound:
            raise ValueError(f"{name} must be at least {bound}; got {value}")


def check_above_zero(experiment: Experiment, *names: str) -> None:
    """Raise a ValueError unless the fields are finite and above 0."""
    for name in names:
        if not 0 < (value := getattr(experiment, name)) < float("inf"):
            raise ValueError(f"{name} must be finite and above 0; got {value}")


def option_names(experiment: type[Experiment]) -> tuple[str, ...]:
    """Return the names of an experiment's options."""
    return tuple(_types(experiment))


def resolved(experiment: type[Experiment], options: Mapping[str, Any]) -> Experiment:
    """Return a cell of the experiment; an option that is not given has its default.

    Raises:
        ValueError: An option is unknown, missing, or its value is wrong.
    """
    types = _types(experiment)
    for name in options:
        check_known("an option", name, types)
    missing = sorted(_required(experiment) - set(options))
    if missing:
        raise ValueError(f"the option {missing[0]} has no default and must be given")
    return experiment(
        **{name: read_value(name, types[name], v) for name, v in options.items()}
    )


def read_value(name: str, kind: Any, value: Any) -> Any:
    """Return a value of TOML as one of an option's type.

    Raises:
        ValueError: It is none.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int and number and value == int(value):
        return int(value)
    if kind is float and number:
        return float(value)
    if kind is bool and isinstance(value, bool):
        return value
    if kind is str and isinstance(value, str):
        return value
    if kind == tuple[int, ...] and isinstance(value, list | tuple):
        return tuple(read_value(name, int, each) for each in value)
    raise ValueError(f"{name} must be {WORDS[kind]}; got {value!r}")


@functools.cache
def _types(experiment: type[Experiment]) -> Mapping[str, Any]:
    hints = typing.get_type_hints(experiment)
    return {f.name: hints[f.name] for f in dataclasses.fields(experiment)}  # pyright: ignore[reportArgumentType] - experiments are dataclasses


@functools.cache
def _required(experiment: type[Experiment]) -> frozenset[str]:
    return frozenset(
        f.name
        for f in dataclasses.fields(experiment)  # pyright: ignore[reportArgumentType] - experiments are dataclasses
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    )
