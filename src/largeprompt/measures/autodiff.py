"""Tilted moments from `log_mgf` alone: an oracle, and a fallback for new measures."""

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.measures.base import Measure, on_domain


def tilted_mean(
    measure: Measure, t: Float[Tensor, "*batch d"]
) -> Float[Tensor, "*batch d"]:
    r"""Return $\nabla\Lambda(t)$ by differentiating `measure.log_mgf`.

    A batch costs one backward pass. Differentiable again.
    """

    def gradient(inside: Tensor) -> Tensor:
        return torch.func.grad(lambda s: measure.log_mgf(s).sum())(inside)

    return on_domain(measure, t, gradient)


def tilted_cov(
    measure: Measure, t: Float[Tensor, "*batch d"]
) -> Float[Tensor, "*batch d d"]:
    r"""Return $\nabla^2\Lambda(t)$ by differentiating `measure.log_mgf` twice.

    A batch costs one backward pass a dimension. Differentiable again.
    """

    def hessian(inside: Tensor) -> Tensor:
        def summed_gradient(s: Tensor) -> Tensor:
            gradient = torch.func.grad(lambda r: measure.log_mgf(r).sum())(s)
            return gradient.reshape(-1, measure.dim).sum(0)

        rows = torch.func.jacrev(summed_gradient)(inside)  # d *batch d
        return rows.movedim(0, -2)

    return on_domain(measure, t, hessian)
