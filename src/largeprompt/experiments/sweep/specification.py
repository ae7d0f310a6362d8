"""What a sweep consists of: a TOML file, read into cells."""

import dataclasses
import itertools
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, final

from largeprompt.experiments.sweep.catalogue import experiment_named, module_of
from largeprompt.experiments.sweep.key import Key, digest
from largeprompt.experiments.sweep.options import check_known, option_names, resolved
from largeprompt.experiments.sweep.ranges import axis_values
from largeprompt.experiments.sweep.version import code_version

PARTS = ("experiment", "options", "grid")
LARGEST = 2**24  # bytes of a file


@final
@dataclasses.dataclass(frozen=True)
class Cell:
    """One run of the experiment.

    Attributes:
        experiment: The name of the experiment.
        configuration: Every option with its value, defaults included; plain JSON data.
        code: The version of the code that is to run it.
    """

    experiment: str
    configuration: Mapping[str, Any]
    code: str

    @property
    def identity(self) -> str:
        """The hash of the configuration, a dot, and the version of the code."""
        return f"{digest(self._content())[:20]}.{self.code}"

    @property
    def key(self) -> Key:
        """The source of its random numbers."""
        return Key.of(self._content())

    def _content(self) -> dict[str, Any]:
        return {
            "experiment": self.experiment,
            "configuration": dict(self.configuration),
        }


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Specification:
    """A sweep: all its cells, in the order of the file.

    Attributes:
        experiment: The name of the experiment.
        code: The version of the code.
        axes: The options that the grid varies.
        cells: The cells by their identity.
        content: The specification as it was read.
    """

    experiment: str
    code: str
    axes: tuple[str, ...]
    cells: Mapping[str, Cell]
    content: Mapping[str, Any]

    def label(self, cell: Cell) -> str:
        """Return what tells a cell from the others, as in `n=64, seed=3`."""
        values = cell.configuration
        return ", ".join(f"{name}={values[name]}" for name in self.axes)


def read_specification(path: Path) -> Specification:
    """Return the sweep that a TOML file describes.

    Raises:
        ValueError: The file is no TOML, or describes no sweep.
    """
    try:
        if (size := path.stat().st_size) > LARGEST:
            raise ValueError(
                f"{path} must be a TOML file of at most {LARGEST:,} bytes; got {size:,}"
            )
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} must be a TOML file: {error}") from error
    except OSError as error:
        raise ValueError(f"{path} must be a file that can be read: {error}") from error
    return specification(content)


def specification(content: Mapping[str, Any], code: str | None = None) -> Specification:
    """Return the sweep of a specification.

    Args:
        content: `experiment`, its name; `options`, one value each; `grid`, a list of
            values each, or several such tables. Every combination is a cell.
        code: The version of the code; that of this process when None.

    Raises:
        ValueError: A name is unknown, a value wrong, or two cells are the same.
    """
    for name in content:
        check_known("a part of a specification", name, PARTS)
    if not isinstance(name := content.get("experiment"), str):
        raise ValueError(f"experiment must be a name; got {name!r}")
    experiment = experiment_named(name)
    shared = _table("options", content.get("options", {}))
    grids = content.get("grid", {})
    version = code_version(module_of(name)) if code is None else code
    cells: dict[str, Cell] = {}
    axes: dict[str, None] = {}
    for grid in grids if isinstance(grids, list) else [grids]:
        for option in (*shared, *_table("grid", grid)):
            check_known("an option", option, option_names(experiment))
        for choice in _combinations(shared, grid):
            instance = resolved(experiment, {**shared, **choice})
            cell = Cell(name, plain(instance), version)
            if cells.setdefault(cell.identity, cell) is not cell:
                told = ", ".join(f"{k}={v}" for k, v in choice.items()) or "no options"
                raise ValueError(f"the cells of a sweep must differ; got {told} twice")
        axes |= dict.fromkeys(grid)
    return Specification(name, version, tuple(axes), cells, content)


def plain(instance: Any) -> dict[str, Any]:
    """Return the fields of an experiment as JSON data."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(instance).items()
    }


def _combinations(
    shared: Mapping[str, Any], grid: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    both = sorted(set(shared) & set(grid))
    if both:
        raise ValueError(
            f"an option must stand in options or in grid; got {both[0]} in both"
        )
    lists = [axis_values(name, values) for name, values in grid.items()]
    for choice in itertools.product(*lists):
        yield dict(zip(grid, choice, strict=True))


def _table(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a table; got {value!r}")
    return value
