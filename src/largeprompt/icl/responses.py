r"""Predictions of one head and their gradients in closed form, prompt by prompt.

With logits $s_i$, values $t_i$, softmax weights $p_i$ and the prediction $T$

| quantity        | softmax                                  | linear                 |
|-----------------|------------------------------------------|------------------------|
| $T$             | $\sum p_i t_i$                           | $\sum s_i t_i/N$       |
| $\nabla_v T$    | $\sum p_i \tilde x_i$                    | $\sum s_i\tilde x_i/N$ |
| $\nabla_{Uz} T$ | $\sum p_i t_i\tilde x_i - T\,\nabla_v T$ | $\sum t_i\tilde x_i/N$ |

and $\nabla_U T = \nabla_{Uz} T\, z^\top$. The softmax column is the tilted mean and the
tilted covariance, applied to $v$, of the prompt (docs/theory.md, section 12).
"""

import abc
import dataclasses
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.icl.batches import Batch
from largeprompt.icl.parameters import Merged


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Response:
    r"""What a head answers to each prompt of a batch, and how that answer moves.

    Attributes:
        prediction: $T$.
        value_gradient: $\nabla_v T$.
        tilt_gradient: $\nabla_{Uz} T$.
    """

    prediction: Float[Tensor, " b"]
    value_gradient: Float[Tensor, "b e"]
    tilt_gradient: Float[Tensor, "b e"]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LossGradient:
    """The loss of a batch and its gradient in $(U, v)$."""

    loss: Float[Tensor, ""]
    gradient: Merged


class Attention(abc.ABC):
    """A way to weigh the tokens of a prompt by their logits."""

    @abc.abstractmethod
    def coefficients(
        self, logits: Float[Tensor, "b n"], values: Float[Tensor, "b n"]
    ) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b n"]]:
        """Return the coefficients of the sums that the two gradients are made of."""

    @abc.abstractmethod
    def respond(
        self,
        coefficients: tuple[Float[Tensor, "b n"], Float[Tensor, "b n"]],
        values: Float[Tensor, "b n"],
        sums: Float[Tensor, "b 2 e"],
    ) -> Response:
        """Return the response, given the sums with those coefficients."""

    @abc.abstractmethod
    def options(self) -> dict[str, Any]:
        """Return every option as JSON-able values, to be recorded with a result."""


@final
@dataclasses.dataclass(frozen=True)
class Softmax(Attention):
    """Softmax attention."""

    @override
    def coefficients(
        self, logits: Float[Tensor, "b n"], values: Float[Tensor, "b n"]
    ) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b n"]]:
        weights = logits.softmax(-1)
        return weights, weights * values

    @override
    def respond(
        self,
        coefficients: tuple[Float[Tensor, "b n"], Float[Tensor, "b n"]],
        values: Float[Tensor, "b n"],
        sums: Float[Tensor, "b 2 e"],
    ) -> Response:
        prediction = coefficients[1].sum(-1).double()
        mean, product = sums.double().unbind(1)
        return Response(prediction, mean, product - prediction[:, None] * mean)

    @override
    def options(self) -> dict[str, Any]:
        return {"attention": "softmax"}


@final
@dataclasses.dataclass(frozen=True)
class Linear(Attention):
    """Linear attention: the weight of a token is its logit over a number.

    Attributes:
        divisor: $N$, the prompt length or one more (`Normaliser.count`).
    """

    divisor: float

    @override
    def coefficients(
        self, logits: Float[Tensor, "b n"], values: Float[Tensor, "b n"]
    ) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b n"]]:
        return logits / self.divisor, values / self.divisor

    @override
    def respond(
        self,
        coefficients: tuple[Float[Tensor, "b n"], Float[Tensor, "b n"]],
        values: Float[Tensor, "b n"],
        sums: Float[Tensor, "b 2 e"],
    ) -> Response:
        prediction = (coefficients[0] * values).sum(-1).double()
        value_gradient, tilt_gradient = sums.double().unbind(1)
        return Response(prediction, value_gradient, tilt_gradient)

    @override
    def options(self) -> dict[str, Any]:
        return {"attention": "linear", "divisor": self.divisor}


def responses(batch: Batch, *attentions: Attention) -> list[Response]:
    """Return the response of each kind of attention to the same prompts."""
    logits, values = batch.prompts.logits, batch.prompts.values
    pairs = [attention.coefficients(logits, values) for attention in attentions]
    rows = [row for pair in pairs for row in pair]
    sums = batch.prompts.sums(torch.stack(rows, dim=1)).split(2, dim=1)
    return [
        attention.respond(pair, values, own)
        for attention, pair, own in zip(attentions, pairs, sums, strict=True)
    ]


def loss_gradient(
    batch: Batch, response: Response, loss_factor: float = 1.0
) -> LossGradient:
    """Return `loss_factor` times the mean square error of a batch, and its gradient."""
    error = response.prediction - batch.answer
    weight = (2 * loss_factor / error.shape[0]) * error
    return LossGradient(
        loss=loss_factor * error.square().mean(),
        gradient=Merged(
            bilinear=(weight[:, None] * response.tilt_gradient).mT @ batch.query,
            value=weight @ response.value_gradient,
        ),
    )
