"""Optimisers as pure functions of a vector, a gradient and a small state of tensors.

The state is explicit so that a checkpoint holds all of it.
"""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

State = Mapping[str, Tensor]


class Update(NamedTuple):
    """The parameters and the optimiser's state after a step."""

    parameters: Float[Tensor, " p"]
    state: State


class Optimiser(abc.ABC):
    """A rule that moves parameters along a gradient; subclasses are frozen records."""

    @abc.abstractmethod
    def start(self, parameters: Float[Tensor, " p"]) -> State:
        """Return the state before the first step."""

    @abc.abstractmethod
    def update(
        self,
        parameters: Float[Tensor, " p"],
        loss: Float[Tensor, ""],
        gradient: Float[Tensor, " p"],
        state: State,
    ) -> Update:
        """Return the parameters and the state after one step."""

    @abc.abstractmethod
    def options(self) -> dict[str, Any]:
        """Return every option as JSON-able values, to be recorded with a result."""


@final
@dataclasses.dataclass(frozen=True)
class SGD(Optimiser):
    """Gradient descent with a constant step."""

    rate: float

    def __post_init__(self) -> None:
        """Check the step."""
        check_positive("rate", self.rate)

    @override
    def start(self, parameters: Float[Tensor, " p"]) -> State:
        return {}

    @override
    def update(
        self,
        parameters: Float[Tensor, " p"],
        loss: Float[Tensor, ""],
        gradient: Float[Tensor, " p"],
        state: State,
    ) -> Update:
        return Update(parameters - self.rate * gradient, state)

    @override
    def options(self) -> dict[str, Any]:
        return {"optimiser": "sgd"} | dataclasses.asdict(self)


@final
@dataclasses.dataclass(frozen=True)
class Adam(Optimiser):
    """Kingma and Ba (2015), Algorithm 1, with the conventions of `torch.optim.Adam`."""

    rate: float
    decay: float = 0.9
    square_decay: float = 0.999
    floor: float = 1e-8

    def __post_init__(self) -> None:
        """Check the options."""
        check_positive("rate", self.rate)
        for name in ("decay", "square_decay"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 0 and below 1; got {getattr(self, name)}"
                )

    @override
    def start(self, parameters: Float[Tensor, " p"]) -> State:
        return {
            "mean": torch.zeros_like(parameters),
            "square": torch.zeros_like(parameters),
            "count": torch.zeros((), dtype=torch.float64),
        }

    @override
    def update(
        self,
        parameters: Float[Tensor, " p"],
        loss: Float[Tensor, ""],
        gradient: Float[Tensor, " p"],
        state: State,
    ) -> Update:
        count = state["count"] + 1
        mean = self.decay * state["mean"] + (1 - self.decay) * gradient
        square = (
            self.square_decay * state["square"]
            + (1 - self.square_decay) * gradient.square()
        )
        direction = mean / (1 - self.decay**count)
        size = (square / (1 - self.square_decay**count)).sqrt() + self.floor
        moved = parameters - self.rate * direction / size
        return Update(moved, {"mean": mean, "square": square, "count": count})

    @override
    def options(self) -> dict[str, Any]:
        return {"optimiser": "adam"} | dataclasses.asdict(self)


@final
@dataclasses.dataclass(frozen=True)
class Polyak(Optimiser):
    r"""Steps from the distance of the loss to its known optimum.

    $$ \theta' = \theta - \min\Big(\eta,\ \frac{(L - L^*)_+}{\|\nabla L\|^2}\Big)
       \nabla L . $$

    Source: Polyak (1987), section 5.3; capped, on batches, as in Loizou, Vaswani,
    Laradji and Lacoste-Julien (2021).

    Attributes:
        optimum: $L^*$; for a long prompt the noise of the answer.
        largest: $\eta$, the largest step.
    """

    optimum: float
    largest: float

    def __post_init__(self) -> None:
        """Check the cap."""
        check_positive("largest", self.largest)

    @override
    def start(self, parameters: Float[Tensor, " p"]) -> State:
        return {}

    @override
    def update(
        self,
        parameters: Float[Tensor, " p"],
        loss: Float[Tensor, ""],
        gradient: Float[Tensor, " p"],
        state: State,
    ) -> Update:
        gap = (loss - self.optimum).clamp(min=0)
        squared_norm = gradient.square().sum()
        if float(squared_norm) == 0:
            return Update(parameters, state)
        rate = (gap / squared_norm).clamp(max=self.largest)
        return Update(parameters - rate * gradient, state)

    @override
    def options(self) -> dict[str, Any]:
        return {"optimiser": "polyak"} | dataclasses.asdict(self)


def check_positive(name: str, value: float) -> None:
    """Raise a ValueError unless the value is a positive finite number."""
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a positive finite number; got {value}")
