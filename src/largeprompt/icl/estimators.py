"""Estimates of a population risk and its gradient from one batch of prompts."""

import abc
import dataclasses
import math
from typing import Any, final

import torch
from typing_extensions import override

from largeprompt.icl.batches import PromptStream
from largeprompt.icl.linear import linear_risk
from largeprompt.icl.parameters import Merged
from largeprompt.icl.responses import (
    Attention,
    Linear,
    LossGradient,
    Softmax,
    loss_gradient,
    responses,
)


class GradientEstimator(abc.ABC):
    """An unbiased estimate of the loss a stream's prompts have on average."""

    @abc.abstractmethod
    def estimate(
        self, stream: PromptStream, head: Merged, generator: torch.Generator
    ) -> LossGradient:
        """Draw a batch and return the estimate of the loss and its gradient.

        Args:
            stream: Where prompts come from.
            head: The head, the factor of its logits folded in.
            generator: The source of the draws.
        """

    @abc.abstractmethod
    def options(self) -> dict[str, Any]:
        """Return every option as JSON-able values, to be recorded with a result."""


@final
@dataclasses.dataclass(frozen=True)
class BatchGradient(GradientEstimator):
    """The gradient of the loss of the batch, as everyone trains.

    Attributes:
        attention: The kind of attention.
    """

    attention: Attention

    @override
    def estimate(
        self, stream: PromptStream, head: Merged, generator: torch.Generator
    ) -> LossGradient:
        batch = stream.draw(head, generator)
        (response,) = responses(batch, self.attention)
        return loss_gradient(batch, response, stream.conventions.loss_factor)

    @override
    def options(self) -> dict[str, Any]:
        return {"gradient": "batch"} | self.attention.options()


@final
@dataclasses.dataclass(frozen=True)
class ControlledGradient(GradientEstimator):
    r"""Softmax attention with linear attention as control variate.

    $$ g_\mathrm{softmax} - \beta\,(g_\mathrm{linear} - E\, g_\mathrm{linear}), $$

    both gradients on the same prompts, the expectation in closed form; the loss
    likewise. Unbiased for every $\beta$.

    Attributes:
        coefficient: $\beta$.
    """

    coefficient: float = 1.0

    def __post_init__(self) -> None:
        """Check the coefficient."""
        if not math.isfinite(self.coefficient):
            raise ValueError(
                f"coefficient must be a finite number; got {self.coefficient}"
            )

    @override
    def estimate(
        self, stream: PromptStream, head: Merged, generator: torch.Generator
    ) -> LossGradient:
        batch, factor = stream.draw(head, generator), stream.conventions.loss_factor
        kinds = Softmax(), Linear(stream.divisor)
        ours, control = (
            loss_gradient(batch, response, factor)
            for response in responses(batch, *kinds)
        )
        mean = linear_loss(stream, head)
        excess = control.gradient.flat() - mean.gradient.flat()
        gradient = ours.gradient.flat() - self.coefficient * excess
        loss = ours.loss - self.coefficient * (control.loss - mean.loss)
        return LossGradient(loss, head.unflat(gradient))

    @override
    def options(self) -> dict[str, Any]:
        return {
            "gradient": "controlled",
            "attention": "softmax",
            "coefficient": self.coefficient,
        }


def linear_loss(stream: PromptStream, head: Merged) -> LossGradient:
    """Return the loss of linear attention on average over prompts, and its gradient.

    Exact (`linear_risk`): no prompt is drawn.

    Raises:
        ValueError: The query is among tokens that are not Gaussian.
    """
    with torch.enable_grad():
        flat = head.flat().requires_grad_()
        variable = head.unflat(flat)
        risk = linear_risk(
            stream.task,
            stream.n,
            variable.bilinear,
            variable.value,
            stream.conventions,
        )
        loss = stream.conventions.loss_factor * risk
        (gradient,) = torch.autograd.grad(loss, flat)
    return LossGradient(loss.detach(), head.unflat(gradient))
