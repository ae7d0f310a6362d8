"""Experiments: from a description to cells, slopes and files."""

from largeprompt.experiments.cells import measure_cells
from largeprompt.experiments.concentration import (
    PRESETS,
    PUBLISHED,
    Concentration,
)
from largeprompt.experiments.heads import GivenHead, HeadSource, RandomHeads
from largeprompt.experiments.result import ConcentrationResult
from largeprompt.experiments.token_laws import TokenLaw, token_law

__all__ = [
    "PRESETS",
    "PUBLISHED",
    "Concentration",
    "ConcentrationResult",
    "GivenHead",
    "HeadSource",
    "RandomHeads",
    "TokenLaw",
    "measure_cells",
    "token_law",
]
