"""The uniform law of a sphere: tokens after normalisation."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.measures.base import Measure
from largeprompt.measures.bessel import sphere_cumulant
from largeprompt.measures.draws import unit_vectors


@final
@dataclasses.dataclass(frozen=True, eq=False)
class UniformSphere(Measure):
    r"""The uniform law of the sphere of radius $R$ around $c$.

    The tilted mean is $c + R A_d(R|t|)\, t/|t|$ with the Bessel ratio
    $A_d = I_{d/2}/I_{d/2-1}$; the tilted law is that of von Mises and Fisher. In one
    dimension the sphere is two points. Derived in docs/theory.md, section 1.

    Attributes:
        center: The centre $c$, which fixes the dimension.
        radius: The radius $R > 0$.
    """

    center: Float[Tensor, " d"]
    radius: Float[Tensor, ""]

    def __post_init__(self) -> None:
        """Check the centre and the radius."""
        if self.center.ndim != 1 or self.center.shape[0] == 0 or self.radius.ndim != 0:
            raise ValueError(
                "a sphere needs a center [d] with d >= 1 and a radius []; got shapes "
                f"{tuple(self.center.shape)} and {tuple(self.radius.shape)}"
            )
        if not (self.center.isfinite().all() and 0 < self.radius < float("inf")):
            raise ValueError(
                "center must be finite and radius positive and finite; got "
                f"{self.center.tolist()} and {float(self.radius)}"
            )

    @property
    @override
    def dim(self) -> int:
        return self.center.shape[-1]

    @override
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        s = self.radius * t
        return t @ self.center + sphere_cumulant(self.dim, s.square().sum(-1)).value

    @override
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        s = self.radius * t
        slope = sphere_cumulant(self.dim, s.square().sum(-1)).first
        return self.center + self.radius * slope.unsqueeze(-1) * s

    @override
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        s = self.radius * t
        cumulant = sphere_cumulant(self.dim, s.square().sum(-1))
        eye = torch.eye(self.dim, dtype=s.dtype, device=s.device)
        across = cumulant.first[..., None, None] * eye
        along = cumulant.second[..., None, None] * s.unsqueeze(-1) * s.unsqueeze(-2)
        return self.radius.square() * (across + along)

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        return self.center + self.radius * unit_vectors(self.center, n, generator)
