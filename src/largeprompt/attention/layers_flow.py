r"""Attention in continuous depth: a Gaussian law that may blow up in finite time.

Layers $z \mapsto z + h \sum_h T_h[\mu](z)$ of a small step $h$ follow
$\dot m = A m + b$, $\dot G = A G + G A^\top$ with $A = \sum_h V_h G U_h$ and
$b = \sum_h V_h m$ (Castin, Ablin, Carrillo and Peyré (2025)). Where every value matrix
is a multiple $v_h I$ of the identity, in one dimension always, $G^{-1}$ is linear in
time and everything is closed-form (docs/theory.md, section 16.2).
"""

import dataclasses
import math
from typing import NamedTuple, final

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from largeprompt.attention.layers import AttentionLayer
from largeprompt.measures import Gaussian


class Velocity(NamedTuple):
    """The rates at which mean and covariance change."""

    mean: Float[Tensor, " d"]
    cov: Float[Tensor, "d d"]


def velocity(layer: AttentionLayer, gaussian: Gaussian) -> Velocity:
    """Return how fast a law moves in depth; the layer's residual is not counted."""
    limit = dataclasses.replace(layer, residual=0.0).limit(gaussian)
    spread = limit.weight @ gaussian.cov
    return Velocity(limit(gaussian.mean), spread + spread.mT)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class ScalarValueFlow:
    r"""The flow of a Gaussian law when every value matrix is $v_h I$.

    With $M = \sum_h v_h U_h$, $\beta = \sum_h v_h$ and
    $G_0^{1/2} (M + M^\top) G_0^{1/2} = 2 R \Lambda R^\top$,

    $$ G(t) = G_0^{1/2} R\, (I - 2 t \Lambda)^{-1} R^\top G_0^{1/2} , \qquad
       t^* = 1 / (2 \lambda_{\max}) , $$

    and for symmetric $M$ and invertible $G_0$
    $m(t) = e^{\beta t} G_0^{1/2} R (I - 2 t \Lambda)^{-1/2} R^\top G_0^{-1/2} m_0$.

    Attributes:
        layer: The heads; the residual is the flow's own.
        start: The law at time 0.
    """

    layer: AttentionLayer
    start: Gaussian

    def __post_init__(self) -> None:
        """Check the dimension and the value matrices."""
        if self.layer.dim != self.start.dim:
            raise ValueError(
                f"the law must be of the layer's dimension {self.layer.dim}; got "
                f"{self.start.dim}"
            )
        eye = torch.eye(self.layer.dim, dtype=torch.float64)
        for head in self.layer.heads:
            value = head.value.double()
            if not torch.equal(value, value[0, 0] * eye):
                raise ValueError(
                    "value matrices must be multiples of the identity; got another"
                )

    @property
    def blow_up_time(self) -> float:
        r"""$t^*$, infinite where the law stays bounded."""
        largest = float(self._spectrum()[0][-1])
        return 1 / (2 * largest) if largest > 0 else math.inf

    def at(self, time: float) -> Gaussian:
        """Return the law at a time from 0 to before the blow-up.

        Raises:
            ValueError: The time is out of that range; or the mean is not zero, and
                $M$ not symmetric or the first covariance singular.
        """
        if not 0 <= time < self.blow_up_time:
            raise ValueError(
                f"time must be from 0 to before {self.blow_up_time:.6g}; got {time:g}"
            )
        variances, directions = self._spectrum()
        root = self._root()
        growth = 1 / (1 - 2 * time * variances)
        axes = root @ directions
        cov = (axes * growth) @ axes.mT
        return Gaussian.unchecked(
            self._mean(time, axes, directions, growth.sqrt()), (cov + cov.mT) / 2
        )

    def _mean(
        self,
        time: float,
        axes: Float64[Tensor, "d d"],
        directions: Float64[Tensor, "d d"],
        growth: Float64[Tensor, " d"],
    ) -> Float64[Tensor, " d"]:
        mean = self.start.mean.double()
        if not mean.any():
            return mean
        form = self._bilinear_form()
        if not torch.allclose(form, form.mT, rtol=0, atol=1e-12 * float(form.norm())):
            raise ValueError(
                "the mean has a closed form for symmetric bilinear forms; got another"
            )
        rate = sum(float(head.value[0, 0]) for head in self.layer.heads)
        inner = torch.linalg.solve(self._root(), mean)
        return math.exp(rate * time) * axes @ (growth * (directions.mT @ inner))

    def _spectrum(self) -> tuple[Float64[Tensor, " d"], Float64[Tensor, "d d"]]:
        form, root = self._bilinear_form(), self._root()
        variances, directions = torch.linalg.eigh(root @ (form + form.mT) @ root / 2)
        return variances, directions

    def _bilinear_form(self) -> Float64[Tensor, "d d"]:
        forms = [
            head.value[0, 0].double() * head.bilinear_form.double()
            for head in self.layer.heads
        ]
        return torch.stack(forms).sum(0)

    def _root(self) -> Float64[Tensor, "d d"]:
        variances, axes = torch.linalg.eigh(self.start.cov.double())
        return (axes * variances.clamp_min(0).sqrt()) @ axes.mT
