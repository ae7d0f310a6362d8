"""Experiments: from a description to cells, slopes and files.

Public names are resolved on first use: what lists or shows a sweep needs no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from largeprompt.experiments.cells import measure_cells as measure_cells
    from largeprompt.experiments.concentration import PRESETS as PRESETS
    from largeprompt.experiments.concentration import PUBLISHED as PUBLISHED
    from largeprompt.experiments.concentration import Concentration as Concentration
    from largeprompt.experiments.heads import GivenHead as GivenHead
    from largeprompt.experiments.heads import HeadSource as HeadSource
    from largeprompt.experiments.heads import RandomHeads as RandomHeads
    from largeprompt.experiments.result import (
        ConcentrationResult as ConcentrationResult,
    )
    from largeprompt.experiments.token_laws import TokenLaw as TokenLaw
    from largeprompt.experiments.token_laws import token_law as token_law

_FILE_OF = {
    "Concentration": "concentration",
    "ConcentrationResult": "result",
    "GivenHead": "heads",
    "HeadSource": "heads",
    "PRESETS": "concentration",
    "PUBLISHED": "concentration",
    "RandomHeads": "heads",
    "TokenLaw": "token_laws",
    "measure_cells": "cells",
    "token_law": "token_laws",
}

__all__ = [*_FILE_OF]  # pyright: ignore[reportUnsupportedDunderAll] - the names are those imported above


def __getattr__(name: str) -> Any:
    if name not in _FILE_OF:
        raise AttributeError(
            f"module 'largeprompt.experiments' has no attribute {name!r}"
        )
    module = importlib.import_module(f"largeprompt.experiments.{_FILE_OF[name]}")
    return getattr(module, name)
