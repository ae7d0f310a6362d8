"""Laws with independent symmetric coordinates: signs, intervals, double exponentials.

The scale of each coordinate is an entry of a vector, which also fixes the dimension,
the dtype and the device. Stable forms are derived in docs/theory.md, section 1.
"""

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.measures import special
from largeprompt.measures.base import Measure, on_domain
from largeprompt.measures.draws import uniforms


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Rademacher(Measure):
    r"""Independent signs: $\Lambda(t) = \sum_i \log\cosh(a_i t_i)$.

    The tilted mean is $a_i \tanh(a_i t_i)$: attention that saturates, the simplest law
    whose limit is not linear.

    Attributes:
        scale: The sizes $a_i > 0$; coordinate $i$ is $\pm a_i$.
    """

    scale: Float[Tensor, " d"]

    def __post_init__(self) -> None:
        """Check the sizes."""
        _require_positive_vector("scale", self.scale)

    @property
    @override
    def dim(self) -> int:
        return self.scale.shape[-1]

    @override
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        return special.log_cosh(self.scale * t).sum(-1)

    @override
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return self.scale * torch.tanh(self.scale * t)

    @override
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        variance = self.scale.square() * special.sech_squared(self.scale * t)
        return torch.diag_embed(variance)

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        heads = uniforms(self.scale, n, generator) < 0.5
        return torch.where(heads, self.scale, -self.scale)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class UniformCube(Measure):
    r"""The uniform law of a box: $\Lambda(t) = \sum_i \log(\sinh(a_i t_i)/(a_i t_i))$.

    The tilted mean is $a_i \coth(a_i t_i) - 1/t_i$.

    Attributes:
        half_width: The half widths $a_i > 0$; coordinate $i$ fills $[-a_i, a_i]$.
    """

    half_width: Float[Tensor, " d"]

    def __post_init__(self) -> None:
        """Check the half widths."""
        _require_positive_vector("half_width", self.half_width)

    @property
    @override
    def dim(self) -> int:
        return self.half_width.shape[-1]

    @override
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        return special.log_sinhc(self.half_width * t).sum(-1)

    @override
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return self.half_width * special.langevin(self.half_width * t)

    @override
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        slope = special.langevin_slope(self.half_width * t)
        return torch.diag_embed(self.half_width.square() * slope)

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        return (2 * uniforms(self.half_width, n, generator) - 1) * self.half_width


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Laplace(Measure):
    r"""Double exponentials: $\Lambda(t) = -\sum_i \log(1 - b_i^2 t_i^2)$.

    Finite for $|t_i| < 1/b_i$ only. The tilted mean is
    $2 b_i^2 t_i / (1 - b_i^2 t_i^2)$; outside the domain see `Measure`.

    Attributes:
        scale: The scales $b_i > 0$; the density is $e^{-|x_i|/b_i} / (2 b_i)$.
    """

    scale: Float[Tensor, " d"]

    def __post_init__(self) -> None:
        """Check the scales."""
        _require_positive_vector("scale", self.scale)

    @property
    @override
    def dim(self) -> int:
        return self.scale.shape[-1]

    @override
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        x = self.scale * t
        outside = (x.abs() >= 1).any(-1)
        x = torch.where(outside.unsqueeze(-1), 0, x)
        finite = -(torch.log1p(x) + torch.log1p(-x)).sum(-1)
        return torch.where(outside, math.inf, finite)

    @override
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return on_domain(self, t, self._mean_inside)

    @override
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        return on_domain(self, t, self._cov_inside)

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        right = -torch.log1p(-uniforms(self.scale, n, generator))
        left = -torch.log1p(-uniforms(self.scale, n, generator))
        return (right - left) * self.scale

    def _mean_inside(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        x = self.scale * t
        return 2 * self.scale * x / ((1 - x) * (1 + x))

    def _cov_inside(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        x = self.scale * t
        variance = (1 - x).square().reciprocal() + (1 + x).square().reciprocal()
        return torch.diag_embed(self.scale.square() * variance)


def _require_positive_vector(name: str, value: Tensor) -> None:
    """Refuse anything but a vector of positive finite numbers."""
    if value.ndim != 1 or value.shape[0] == 0 or not value.is_floating_point():
        raise ValueError(
            f"{name} must be a floating-point vector [d] with d >= 1; "
            f"got {value.dtype} of shape {tuple(value.shape)}"
        )
    if not ((value > 0) & value.isfinite()).all():
        raise ValueError(f"{name} must be positive and finite; got {value.tolist()}")
