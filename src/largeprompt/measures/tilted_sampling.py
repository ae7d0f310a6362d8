"""Exact draws from tilted laws that leave their family.

An open function: a new measure joins by registering its own sampler.
"""

import functools

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.measures.base import Measure
from largeprompt.measures.coordinates import Laplace, Rademacher, UniformCube
from largeprompt.measures.draws import uniforms, unit_vectors
from largeprompt.measures.sphere import UniformSphere


@functools.singledispatch
@torch.no_grad()
def sample_tilted(
    measure: Measure, by: Float[Tensor, " d"], n: int, generator: torch.Generator
) -> Float[Tensor, "n d"]:
    """Draw `n` independent points of `measure` tilted by `by`.

    Raises:
        TypeError: If no exact sampler is registered for this kind of measure.
    """
    raise TypeError(
        "an exact sampler must be registered with sample_tilted.register; "
        f"got a tilted {type(measure).__name__}"
    )


@sample_tilted.register
@torch.no_grad()
def _(
    measure: Rademacher, by: Float[Tensor, " d"], n: int, generator: torch.Generator
) -> Float[Tensor, "n d"]:
    """Draw signs that are positive with probability sigmoid(2 a t)."""
    heads = uniforms(by, n, generator) < torch.sigmoid(2 * measure.scale * by)
    return torch.where(heads, measure.scale, -measure.scale)


@sample_tilted.register
@torch.no_grad()
def _(
    measure: UniformCube, by: Float[Tensor, " d"], n: int, generator: torch.Generator
) -> Float[Tensor, "n d"]:
    """Invert the distribution function of each coordinate, an exponential cut off."""
    quantile = uniforms(by, n, generator)
    steepness = (measure.half_width * by).abs()
    flat = steepness == 0
    safe = torch.where(flat, 1, steepness)
    curved = 1 + torch.log1p(quantile * torch.expm1(-2 * safe)) / safe
    towards = torch.where(by < 0, -measure.half_width, measure.half_width)
    return towards * torch.where(flat, 1 - 2 * quantile, curved)


@sample_tilted.register
@torch.no_grad()
def _(
    measure: Laplace, by: Float[Tensor, " d"], n: int, generator: torch.Generator
) -> Float[Tensor, "n d"]:
    """Draw one of two exponentials, of rates 1/b - t to the right and 1/b + t left."""
    x = measure.scale * by
    right = uniforms(by, n, generator) < (1 + x) / 2
    size = -torch.log1p(-uniforms(by, n, generator)) * measure.scale
    return torch.where(right, size / (1 - x), -size / (1 + x))


@sample_tilted.register
@torch.no_grad()
def _(
    measure: UniformSphere, by: Float[Tensor, " d"], n: int, generator: torch.Generator
) -> Float[Tensor, "n d"]:
    """Draw the height along the tilt, then a direction across it."""
    size = by.norm()
    north = torch.eye(measure.dim, dtype=by.dtype, device=by.device)[0]
    pole = torch.where(size > 0, by / size, north)
    strength = measure.radius * size
    if measure.dim == 1:
        up = uniforms(by, n, generator) < torch.sigmoid(2 * strength)
        return measure.center + measure.radius * torch.where(up, pole, -pole)
    height, breadth = _heights(by, strength, n, generator)
    across = unit_vectors(by, n, generator)
    across = across - (across @ pole).unsqueeze(-1) * pole
    across = across / across.norm(dim=-1, keepdim=True)
    points = height.unsqueeze(-1) * pole + breadth.unsqueeze(-1) * across
    return measure.center + measure.radius * points


def _heights(
    by: Float[Tensor, " d"],
    strength: Float[Tensor, ""],
    n: int,
    generator: torch.Generator,
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    r"""Draw heights $h$ of density $\propto e^{\kappa h}(1-h^2)^{(d-3)/2}$.

    Returned beside $\sqrt{1-h^2}$. Rejection from a transformed beta law (Wood (1994),
    Simulation of the von Mises Fisher distribution), written in $1 - h^2$ so that a
    large $\kappa$ loses no digits.
    """
    free = by.shape[0] - 1
    b = free / (2 * strength + torch.sqrt(4 * strength.square() + free**2))
    best = (1 - b) / (1 + b)
    ceiling = strength * best + free * torch.log(4 * b / (1 + b).square())
    heights, breadths = by.new_empty(0), by.new_empty(0)
    while heights.shape[0] < n:
        draws = n - heights.shape[0]
        beta = (1 + unit_vectors(by, draws, generator)[:, 0]) / 2
        scale = 1 - (1 - b) * beta
        height = (1 - (1 + b) * beta) / scale
        level = strength * height + free * torch.log(2 * b / ((1 + b) * scale))
        kept = level - ceiling >= torch.log(uniforms(by, draws, generator)[:, 0])
        breadth = 2 * torch.sqrt(b * beta * (1 - beta)) / scale
        heights = torch.cat([heights, height[kept]])
        breadths = torch.cat([breadths, breadth[kept]])
    return heights, breadths
