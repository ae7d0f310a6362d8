"""The experiments that a sweep can be asked for by name, and anyone's own."""

import importlib
from collections.abc import Mapping
from types import MappingProxyType

from largeprompt.experiments.sweep.experiment import Experiment
from largeprompt.experiments.sweep.options import check_known

_LAB = "largeprompt.experiments.sweep.lab"
CATALOGUE: Mapping[str, str] = MappingProxyType(
    {
        "audit": f"{_LAB}.audit:AuditCell",
        "concentration": f"{_LAB}.concentration:ConcentrationCell",
        "flow": f"{_LAB}.flow:FlowCell",
        "law": f"{_LAB}.law:LawCell",
        "population": f"{_LAB}.population:PopulationCell",
        "training": f"{_LAB}.training:TrainingCell",
    }
)


def experiment_named(name: str) -> type[Experiment]:
    """Return an experiment by its name, or by `module:Class` when it is one's own.

    Raises:
        ValueError: There is none.
    """
    if ":" not in name:
        check_known("an experiment", name, CATALOGUE)
    module, _, attribute = CATALOGUE.get(name, name).partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        raise ValueError(
            f"an experiment must be importable; got {name!r}: {error}"
        ) from error
    if not (isinstance(found, type) and issubclass(found, Experiment)):
        raise ValueError(
            f"an experiment must be a subclass of Experiment; got {name!r}: {found!r}"
        )
    return found


def module_of(name: str) -> str:
    """Return the module of an experiment that is not of this package, else nothing."""
    return "" if name in CATALOGUE else name.partition(":")[0]
