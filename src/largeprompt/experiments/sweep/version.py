"""Which code computes a cell: an edited file is another version."""

import functools
import hashlib
import importlib.metadata
import importlib.util
from pathlib import Path

import largeprompt
from largeprompt.experiments.sweep.key import digest

PACKAGES = ("torch", "numpy", "scipy")
WITHOUT_INFLUENCE = ("cli", "report", "testing")
"""Rooms that come after the experiments: no result can depend on them."""


@functools.cache
def code_version(module: str = "") -> str:
    """Return a short name of the code that runs in this process.

    It changes with the version of the package, with any source file of it that an
    experiment may import (edited files count), and with the versions of torch, numpy
    and scipy.

    Args:
        module: The module of an experiment that is not of this package; its file
            counts too.
    """
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return digest(
        {
            "largeprompt": largeprompt.__version__,
            "sources": _sources(Path(largeprompt.__file__).parent),
            "module": _file_digest(module) if module else "",
            **versions,
        }
    )[:12]


def _sources(package: Path) -> str:
    """Return the hash of all source files that a result may depend on."""
    hashed = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if place.parts[0] in WITHOUT_INFLUENCE or "__pycache__" in place.parts:
            continue
        hashed.update(f"{place.as_posix()}\0".encode())
        hashed.update(hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()


def _file_digest(module: str) -> str:
    found = importlib.util.find_spec(module)
    assert found is not None, "the module was imported before"
    assert found.origin is not None, "a module with an experiment has a file"
    return hashlib.sha256(Path(found.origin).read_bytes()).hexdigest()
