r"""How much linear attention, as control variate, steadies the gradient of softmax."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.batches import Batch, PromptStream
from largeprompt.icl.parameters import Parameters, merge_jacobian
from largeprompt.icl.responses import Linear, Response, Softmax, responses


@final
@dataclasses.dataclass(frozen=True)
class VarianceReduction:
    r"""Estimates of the total variance of a gradient, plain over controlled.

    Attributes:
        coefficient: The $\beta$ that reduces it most.
        factor: The variance of the plain gradient over the controlled one at that
            $\beta$, at least 1.
        factor_at_one: The same at $\beta = 1$.
    """

    coefficient: float
    factor: float
    factor_at_one: float


@torch.no_grad()
def variance_reduction(
    stream: PromptStream, parameters: Parameters, generator: torch.Generator
) -> VarianceReduction:
    r"""Measure the trace of the gradient's covariance with and without control.

    The gradient is that of one prompt in `parameters`; a batch divides both variances
    by its size. With $\Sigma$ the traces of (cross-)covariances over one batch

    $$ \beta^* = \frac{\Sigma_{sl}}{\Sigma_{ll}}, \qquad \text{factor} =
       \frac{\Sigma_{ss}}{\Sigma_{ss} - 2\beta\Sigma_{sl} + \beta^2\Sigma_{ll}} . $$

    Args:
        stream: Where prompts come from; a large batch makes a sharp estimate.
        parameters: Where the gradient is taken.
        generator: The source of the draws.
    """
    head = parameters.merge(stream.logit_factor)
    batch = stream.draw(head, generator)
    softmax, linear = (
        _gradients(batch, response, parameters, stream.logit_factor)
        for response in responses(batch, Softmax(), Linear(stream.divisor))
    )
    own = float(softmax.square().sum())
    control = float(linear.square().sum())
    shared = float((softmax * linear).sum())
    best = shared / control
    return VarianceReduction(
        coefficient=best,
        factor=own / (own - best * shared),
        factor_at_one=own / float((softmax - linear).square().sum()),
    )


def _gradients(
    batch: Batch, response: Response, parameters: Parameters, factor: float
) -> Float[Tensor, "b p"]:
    """Return the gradient of every prompt's square error, centred over the batch."""
    error = 2 * (response.prediction - batch.answer)[:, None]
    outer = torch.einsum("bi,bj->bij", error * response.tilt_gradient, batch.query)
    merged = torch.cat([outer.flatten(1), error * response.value_gradient], dim=1)
    gradients = merged @ merge_jacobian(parameters, factor)
    return gradients - gradients.mean(0)
