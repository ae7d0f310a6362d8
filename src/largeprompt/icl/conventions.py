"""Conventions in which published codes differ: explicit, so that a result records them.

The risk functions of this room take the merged matrix $U$ with every scale folded in,
tokens without the query, and no factor 1/2; a `Conventions` says how a published model
and loss translate into that.
"""

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import Any, final


class LogitScale(enum.StrEnum):
    """What a logit is divided by; $d$ is the dimension of an input."""

    NONE = "none"
    SQRT_INPUT_DIM = "sqrt(d)"
    SQRT_TOKEN_DIM = "sqrt(d+1)"

    def factor(self, dim: int) -> float:
        """Return the number that multiplies the logits, for inputs in `dim`."""
        match self:
            case LogitScale.NONE:
                return 1.0
            case LogitScale.SQRT_INPUT_DIM:
                return 1 / math.sqrt(dim)
            case LogitScale.SQRT_TOKEN_DIM:
                return 1 / math.sqrt(dim + 1)


class Normaliser(enum.StrEnum):
    """What the sum of linear attention over `n` tokens and a query is divided by."""

    TOKENS = "n"
    TOKENS_AND_QUERY = "n+1"

    def divisor(self, n: float) -> float:
        """Return the divisor for a prompt of `n` tokens, the query not counted."""
        return n if self is Normaliser.TOKENS else n + 1

    def share(self, n: float) -> float:
        """Return `n` over the divisor, also where both are infinite."""
        return 1.0 if self is Normaliser.TOKENS else 1 / (1 + 1 / n)


@final
@dataclasses.dataclass(frozen=True)
class Conventions:
    """How a published model turns a prompt into a prediction and a loss.

    Attributes:
        logit_scale: What the logits are divided by.
        query_in_prompt: Whether the query token is one of the keys.
        normaliser: The divisor of linear attention.
        half_loss: Whether the loss is half the mean square error.
    """

    logit_scale: LogitScale = LogitScale.NONE
    query_in_prompt: bool = False
    normaliser: Normaliser = Normaliser.TOKENS
    half_loss: bool = False

    @property
    def loss_factor(self) -> float:
        """The loss over the mean square error: 1/2 or 1."""
        return 0.5 if self.half_loss else 1.0

    def options(self) -> dict[str, Any]:
        """Return every option as JSON-able values, to be recorded with a result."""
        return {
            "logit_scale": str(self.logit_scale),
            "query_in_prompt": self.query_in_prompt,
            "normaliser": str(self.normaliser),
            "half_loss": self.half_loss,
        }

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "Conventions":
        """Return the conventions that recorded these `options`."""
        return cls(
            logit_scale=LogitScale(options["logit_scale"]),
            query_in_prompt=bool(options["query_in_prompt"]),
            normaliser=Normaliser(options["normaliser"]),
            half_loss=bool(options["half_loss"]),
        )
