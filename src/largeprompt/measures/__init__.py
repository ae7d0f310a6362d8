"""Probability measures on R^d, known through their cumulants."""

from largeprompt.measures.affine import Affine
from largeprompt.measures.algebra import Pushforward, Tilted, pushforward, tilt
from largeprompt.measures.base import Measure
from largeprompt.measures.coordinates import Laplace, Rademacher, UniformCube
from largeprompt.measures.gaussian import Gaussian
from largeprompt.measures.mixture import Mixture
from largeprompt.measures.process import (
    Autocorrelated,
    Autoregression,
    GaussianSequence,
)
from largeprompt.measures.product import Product
from largeprompt.measures.prompt import Prompt
from largeprompt.measures.sphere import UniformSphere
from largeprompt.measures.tilted_sampling import sample_tilted

__all__ = [
    "Affine",
    "Autocorrelated",
    "Autoregression",
    "Gaussian",
    "GaussianSequence",
    "Laplace",
    "Measure",
    "Mixture",
    "Product",
    "Prompt",
    "Pushforward",
    "Rademacher",
    "Tilted",
    "UniformCube",
    "UniformSphere",
    "pushforward",
    "sample_tilted",
    "tilt",
]
