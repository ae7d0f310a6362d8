"""Operations on measures that return measures.

`tilt` and `pushforward` are open functions: they keep the structure of a measure where
its family is closed, wrap it where it is not, and a new measure joins by registering.
"""

import dataclasses
import functools
import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.measures.affine import Affine
from largeprompt.measures.base import Measure, on_domain
from largeprompt.measures.gaussian import Gaussian
from largeprompt.measures.mixture import Mixture
from largeprompt.measures.product import Product
from largeprompt.measures.prompt import Prompt
from largeprompt.measures.tilted_sampling import sample_tilted


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Tilted(Measure):
    r"""A measure tilted by $s$: $\Lambda(t) = \Lambda_\mu(t + s) - \Lambda_\mu(s)$.

    Attributes:
        base: The measure $\mu$.
        by: The tilt $s$, inside the domain of $\Lambda_\mu$.
    """

    base: Measure
    by: Float[Tensor, " d"]

    def __post_init__(self) -> None:
        """Check that the tilted law exists."""
        _check_tilt(self.base, self.by)
        normaliser = float(self.base.log_mgf(self.by))
        if not math.isfinite(normaliser):
            raise ValueError(
                "a tilt must lie where log_mgf is finite; "
                f"got log_mgf = {normaliser} at {self.by.tolist()}"
            )

    @property
    @override
    def dim(self) -> int:
        return self.base.dim

    @override
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        return self.base.log_mgf(t + self.by) - self.base.log_mgf(self.by)

    @override
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return self.base.tilted_mean(t + self.by)

    @override
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        return self.base.tilted_cov(t + self.by)

    @override
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        return sample_tilted(self.base, self.by, n, generator)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Pushforward(Measure):
    r"""The law of $W x + b$ for $x \sim \mu$.

    $$ \Lambda(t) = \Lambda_\mu(W^\top t) + b \cdot t . $$

    Attributes:
        base: The measure $\mu$.
        map: The affine map $x \mapsto W x + b$.
    """

    base: Measure
    map: Affine

    def __post_init__(self) -> None:
        """Check that the map starts where the measure lives."""
        _check_map(self.base, self.map)

    @property
    @override
    def dim(self) -> int:
        return self.map.weight.shape[0]

    @override
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        return self.base.log_mgf(t @ self.map.weight) + t @ self.map.bias

    @override
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return on_domain(self, t, self._mean_inside)

    @override
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        return on_domain(self, t, self._cov_inside)

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        return self.map(self.base.sample(n, generator))

    def _mean_inside(self, t: Tensor) -> Tensor:
        return self.map(self.base.tilted_mean(t @ self.map.weight))

    def _cov_inside(self, t: Tensor) -> Tensor:
        cov = self.base.tilted_cov(t @ self.map.weight)
        return self.map.weight @ cov @ self.map.weight.mT


@functools.singledispatch
def tilt(measure: Measure, by: Float[Tensor, " d"]) -> Measure:
    r"""Return the law of density $e^{s \cdot x - \Lambda(s)}$ against `measure`.

    The structure stays wherever the family is closed: a tilted Gaussian is a Gaussian,
    a tilted mixture a mixture, a tilted prompt a prompt, a tilted product a product.

    Args:
        measure: The law to tilt.
        by: The tilt $s$.

    Raises:
        ValueError: If the tilt is of another dimension, or if `log_mgf` is infinite
            there: no tilted law exists.
    """
    return Tilted(measure, by)


@tilt.register
def _(measure: Gaussian, by: Float[Tensor, " d"]) -> Measure:
    _check_tilt(measure, by)
    return Gaussian.unchecked(measure.tilted_mean(by), measure.cov)


@tilt.register
def _(measure: Prompt, by: Float[Tensor, " d"]) -> Measure:
    _check_tilt(measure, by)
    return Prompt(measure.atoms, measure.log_weights + measure.atoms @ by)


@tilt.register
def _(measure: Mixture, by: Float[Tensor, " d"]) -> Measure:
    _check_tilt(measure, by)
    components = tuple(tilt(component, by) for component in measure.components)
    masses = [component.log_mgf(by) for component in measure.components]
    return Mixture(components, measure.log_weights + torch.stack(masses))


@tilt.register
def _(measure: Product, by: Float[Tensor, " d"]) -> Measure:
    _check_tilt(measure, by)
    return Product(tuple(tilt(factor, block) for factor, block in measure.blocks(by)))


@tilt.register
def _(measure: Pushforward, by: Float[Tensor, " d"]) -> Measure:
    _check_tilt(measure, by)
    return Pushforward(tilt(measure.base, by @ measure.map.weight), measure.map)


@tilt.register
def _(measure: Tilted, by: Float[Tensor, " d"]) -> Measure:
    _check_tilt(measure, by)
    return tilt(measure.base, measure.by + by)


@functools.singledispatch
def pushforward(measure: Measure, by: Affine) -> Measure:
    r"""Return the law of the image of a point of `measure` under an affine map.

    The structure stays wherever the family is closed: the image of a Gaussian is a
    Gaussian, of a prompt a prompt, of a mixture a mixture.

    Args:
        measure: The law of the point.
        by: The map.

    Raises:
        ValueError: If the map starts from another dimension.
    """
    return Pushforward(measure, by)


@pushforward.register
def _(measure: Gaussian, by: Affine) -> Measure:
    _check_map(measure, by)
    cov = by.weight @ measure.cov @ by.weight.mT
    return Gaussian.unchecked(by(measure.mean), (cov + cov.mT) / 2)


@pushforward.register
def _(measure: Prompt, by: Affine) -> Measure:
    _check_map(measure, by)
    return Prompt(by(measure.atoms), measure.log_weights)


@pushforward.register
def _(measure: Mixture, by: Affine) -> Measure:
    _check_map(measure, by)
    components = tuple(pushforward(component, by) for component in measure.components)
    return Mixture(components, measure.log_weights)


@pushforward.register
def _(measure: Pushforward, by: Affine) -> Measure:
    _check_map(measure, by)
    return Pushforward(measure.base, by.after(measure.map))


def _check_tilt(measure: Measure, by: Tensor) -> None:
    if by.shape != (measure.dim,):
        raise ValueError(
            f"a tilt must be a vector of dimension {measure.dim}; "
            f"got shape {tuple(by.shape)}"
        )


def _check_map(measure: Measure, by: Affine) -> None:
    if by.weight.shape[1] != measure.dim:
        raise ValueError(
            f"the map must start from dimension {measure.dim}; "
            f"got a matrix of shape {tuple(by.weight.shape)}"
        )
