"""One of everything, each beside nodes and weights that integrate against the same law.

The nodes come from quadrature rules and enumeration in numpy alone, so that a measure
and its nodes share no code. Nodes are exact to rounding for tilts up to about 1.
"""

import itertools
from typing import NamedTuple

import numpy as np
import scipy.special
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from largeprompt.measures import (
    Affine,
    Gaussian,
    Laplace,
    Measure,
    Mixture,
    Product,
    Prompt,
    Pushforward,
    Rademacher,
    Tilted,
    UniformCube,
    UniformSphere,
)

Array = NDArray[np.float64]


class Nodes(NamedTuple):
    """A discrete law: points, one a row, and their probabilities."""

    points: Array
    weights: Array


class Specimen(NamedTuple):
    """A measure and nodes that integrate against the same law."""

    measure: Measure
    nodes: Nodes


class Moments(NamedTuple):
    """The cumulant function and its first two derivatives at one tilt."""

    log_mgf: Array
    mean: Array
    cov: Array


NAMES = (
    "gaussian",
    "gaussian-singular",
    "laplace",
    "mixture",
    "product",
    "prompt",
    "prompt-of-one-number",
    "pushforward",
    "rademacher",
    "sphere-1",
    "sphere-2",
    "sphere-3",
    "sphere-4",
    "tilted-cube",
    "tilted-laplace",
    "tilted-rademacher",
    "tilted-sphere",
    "uniform-cube",
)


def specimen(name: str, dtype: torch.dtype = torch.float64) -> Specimen:
    """Return the specimen of this name, its parameters in `dtype`."""
    tensor = lambda values: torch.tensor(np.asarray(values), dtype=dtype)
    part = lambda other: specimen(other, dtype)
    match name:
        case "gaussian":
            factor = np.array([[1.0, 0.0], [-0.6, 0.7]])
            return _gaussian(tensor, np.array([0.3, -0.2]), factor)
        case "gaussian-singular":
            factor = np.array([[1.0, 0.2], [0.5, -0.4], [1.5, -0.2]])
            return _gaussian(tensor, np.array([0.1, 0.0, -0.4]), factor)
        case "laplace":
            scale = np.array([0.4, 0.55])
            return Specimen(Laplace(tensor(scale)), _laplace_nodes(scale))
        case "mixture":
            parts = [part("gaussian"), part("uniform-cube"), part("sphere-2")]
            weights = np.array([0.5, 0.2, 0.3])
            measure = Mixture(
                tuple(p.measure for p in parts), tensor(np.log(3 * weights))
            )
            return Specimen(measure, _merge([p.nodes for p in parts], weights))
        case "product":
            parts = [part("rademacher"), part("laplace"), part("prompt-of-one-number")]
            measure = Product(tuple(p.measure for p in parts))
            return Specimen(measure, _grid([p.nodes for p in parts]))
        case "prompt":
            atoms = np.array(
                [[1.0, 0.2, -0.7], [1.0, 0.2, -0.7], [-0.4, 1.1, 0.3], [0, -0.9, 1.6]]
            )
            weights = np.array([0.1, 0.4, 0.3, 0.2])
            measure = Prompt(tensor(atoms), tensor(np.log(7 * weights)))
            return Specimen(measure, Nodes(atoms, weights))
        case "prompt-of-one-number":
            measure = Prompt(tensor([[0.7]]))
            return Specimen(measure, Nodes(np.array([[0.7]]), np.ones(1)))
        case "pushforward":
            base = part("laplace")
            weight = np.array([[1.0, 0.5], [-0.3, 0.8], [0.2, 0.1]])
            bias = np.array([0.2, -0.1, 0.4])
            points = base.nodes.points @ weight.T + bias
            return Specimen(
                Pushforward(base.measure, Affine(tensor(weight), tensor(bias))),
                Nodes(points, base.nodes.weights),
            )
        case "rademacher":
            scale = np.array([1.0, 0.5, 2.0])
            signs = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
            return Specimen(
                Rademacher(tensor(scale)), Nodes(signs * scale, np.full(8, 1 / 8))
            )
        case "sphere-1" | "sphere-2" | "sphere-3" | "sphere-4":
            d = int(name[-1])
            center, radius = np.linspace(-0.3, 0.4, d), 1.4
            sphere = _sphere_nodes(d)
            return Specimen(
                UniformSphere(tensor(center), tensor(radius)),
                Nodes(center + radius * sphere.points, sphere.weights),
            )
        case "tilted-cube" | "tilted-laplace" | "tilted-rademacher" | "tilted-sphere":
            base = part(
                {"cube": "uniform-cube", "sphere": "sphere-3"}.get(
                    name.removeprefix("tilted-"), name.removeprefix("tilted-")
                )
            )
            by = np.array([0.5, -0.8, 0.3])[: base.measure.dim]
            weights = base.nodes.weights * np.exp(base.nodes.points @ by)
            return Specimen(
                Tilted(base.measure, tensor(by)),
                Nodes(base.nodes.points, weights / weights.sum()),
            )
        case "uniform-cube":
            half_width = np.array([1.5, 0.8])
            points, weights = np.polynomial.legendre.leggauss(24)
            axes = [Nodes(a * points[:, None], weights / 2) for a in half_width]
            return Specimen(UniformCube(tensor(half_width)), _grid(axes))
        case _:
            raise ValueError(f"name must be one of {NAMES}; got {name!r}")


def tilts(measure: Measure, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return a batch [3, 2, d] of tilts inside every domain, zero among them."""
    generator = torch.Generator().manual_seed(11)
    draws = torch.rand(3, 2, measure.dim, generator=generator, dtype=torch.float64)
    draws = 1.4 * draws - 0.7
    draws[0, 0] = 0
    return draws.to(dtype)


def moments(nodes: Nodes, t: ArrayLike) -> Moments:
    """Integrate against the nodes in extended precision."""
    points = nodes.points.astype(np.longdouble)
    masses = nodes.weights * np.exp(points @ np.asarray(t, dtype=np.longdouble))
    total = masses.sum()
    mean = masses @ points / total
    centred = points - mean
    cov = (masses[:, None] * centred).T @ centred / total
    return Moments(*(np.asarray(m, dtype=float) for m in (np.log(total), mean, cov)))


def _gaussian(tensor, mean: Array, factor: Array) -> Specimen:
    points, weights = np.polynomial.hermite_e.hermegauss(32)
    axis = Nodes(points[:, None], weights / weights.sum())
    standard = _grid([axis] * factor.shape[1])
    return Specimen(
        Gaussian(tensor(mean), tensor(factor @ factor.T)),
        Nodes(mean + standard.points @ factor.T, standard.weights),
    )


def _laplace_nodes(scale: Array) -> Nodes:
    points, weights = np.polynomial.laguerre.laggauss(60)
    both = np.concatenate([points, -points])[:, None]
    masses = np.concatenate([weights, weights]) / 2
    return _grid([Nodes(b * both, masses) for b in scale])


def _sphere_nodes(d: int) -> Nodes:
    """Slice the sphere into spheres, by Gauss-Gegenbauer nodes in the height."""
    if d == 1:
        return Nodes(np.array([[-1.0], [1.0]]), np.full(2, 0.5))
    if d == 2:
        angles = 2 * np.pi * np.arange(40) / 40
        circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return Nodes(circle, np.full(40, 1 / 40))
    heights, masses = scipy.special.roots_gegenbauer(24, (d - 2) / 2)
    slices = _sphere_nodes(d - 1)
    points = [
        np.column_stack([np.full(len(slices.weights), h), np.sqrt(1 - h**2) * s])
        for h in heights
        for s in [slices.points]
    ]
    weights = np.outer(masses / masses.sum(), slices.weights).ravel()
    return Nodes(np.concatenate(points), weights)


def _grid(axes: list[Nodes]) -> Nodes:
    """Return the product of discrete laws."""
    points, weights = axes[0]
    for axis in axes[1:]:
        repeated = np.repeat(points, len(axis.weights), axis=0)
        tiled = np.tile(axis.points, (len(weights), 1))
        points = np.concatenate([repeated, tiled], axis=1)
        weights = np.outer(weights, axis.weights).ravel()
    return Nodes(points, weights)


def _merge(parts: list[Nodes], weights: Array) -> Nodes:
    """Return the mixture of discrete laws."""
    return Nodes(
        np.concatenate([part.points for part in parts]),
        np.concatenate([w * p.weights for w, p in zip(weights, parts, strict=True)]),
    )
