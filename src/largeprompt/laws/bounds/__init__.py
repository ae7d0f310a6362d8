"""Proven bounds on attention over a finite prompt: one class a theorem."""

from largeprompt.laws.bounds.average import LargestTokenCeiling, QueryAveragedBound
from largeprompt.laws.bounds.base import Bound
from largeprompt.laws.bounds.drift import NestedDriftBound, TriangleDriftBound
from largeprompt.laws.bounds.gradient import BilinearGradientBound
from largeprompt.laws.bounds.output import OutputBound
from largeprompt.laws.bounds.published import (
    MomentRateBound,
    SubGaussianGradientBound,
    SubGaussianOutputBound,
    UniformRateBound,
)

__all__ = [
    "BilinearGradientBound",
    "Bound",
    "LargestTokenCeiling",
    "MomentRateBound",
    "NestedDriftBound",
    "OutputBound",
    "QueryAveragedBound",
    "SubGaussianGradientBound",
    "SubGaussianOutputBound",
    "TriangleDriftBound",
    "UniformRateBound",
]
