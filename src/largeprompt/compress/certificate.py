r"""What is known of the error of a head's output: a ball that holds the true output."""

import dataclasses
import enum
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor


@final
class Status(enum.Enum):
    """Why a certificate holds."""

    PROVEN = "proven"  # for every prompt, at every number of draws
    ASYMPTOTIC = "asymptotic"  # as the number of draws grows
    EXCHANGEABLE = "exchangeable"  # if the next query is like the held-out ones


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Certificate:
    r"""Balls of which each holds a head's true output with probability `1 - delta`.

    The statement is about one query at a time; over many queries a share `delta` may
    fail.

    Attributes:
        centre: The best estimate of the output.
        radius: The radius of the ball, in the units of the values.
        delta: The probability that the ball misses, at most.
        status: Why that is so.
    """

    centre: Float[Tensor, "*b v"]
    radius: Float[Tensor, "*b"]
    delta: float
    status: Status

    def error(self, answer: Float[Tensor, "*b v"]) -> Float[Tensor, "*b"]:
        """Return what an answer is off by at most, whenever the ball holds the output.

        Args:
            answer: A head's output by any method, which may depend on the draws.
        """
        return torch.linalg.vector_norm(answer - self.centre, dim=-1) + self.radius

    def relative_error(self, answer: Float[Tensor, "*b v"]) -> Float[Tensor, "*b"]:
        r"""Return the same over the norm of the true output, which the ball bounds.

        Infinite where the ball holds the origin.
        """
        least = torch.linalg.vector_norm(self.centre, dim=-1) - self.radius
        bound = self.error(answer) / least
        return bound.where(least > 0, torch.inf)


def check_delta(delta: float) -> None:
    """Raise a ValueError unless `delta` is a probability strictly inside (0, 1)."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1; got {delta}")
