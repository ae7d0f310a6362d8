"""Moments of a head's output by drawing prompts, where no exact law is known."""

import dataclasses
import math
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention.head import Head
from largeprompt.measures import Measure

BLOCK = 2**20  # numbers drawn at once


class SimulatedMoments(NamedTuple):
    """Averages over drawn prompts, and the interval of the mean square error."""

    mean: Float[Tensor, " v"]
    error: Float[Tensor, "v v"]
    jacobian: Float[Tensor, "v d"]
    interval: tuple[float, float]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Simulation:
    """How to estimate what is not known exactly.

    Attributes:
        prompts: How many prompts to draw, at least 2.
        generator: The source of the draws.
        confidence: Of the interval around the mean square error, which is the normal
            one of an average (valid for many prompts and errors of finite variance).
    """

    prompts: int
    generator: torch.Generator
    confidence: float = 0.99

    def __post_init__(self) -> None:
        """Check the number of prompts and the confidence."""
        if self.prompts < 2:
            raise ValueError(f"prompts must be at least 2; got {self.prompts}")
        if not 0 < self.confidence < 1:
            raise ValueError(
                f"confidence must be strictly between 0 and 1; got {self.confidence}"
            )

    @torch.no_grad()
    def run(
        self, head: Head, measure: Measure, z: Float[Tensor, " e"], n: int
    ) -> SimulatedMoments:
        """Average over drawn prompts of `n` tokens each."""
        tilt, value = head.tilt(z).double(), head.value.double()
        limit = head.output(measure, z).double()
        total = torch.zeros_like(limit)
        error = torch.zeros_like(torch.outer(limit, limit))
        spread = torch.zeros(measure.dim, measure.dim, dtype=torch.float64)
        squares = []
        rows = max(1, BLOCK // (n * measure.dim))
        for start in range(0, self.prompts, rows):
            count = min(rows, self.prompts - start)
            tokens = measure.sample(count * n, self.generator).double()
            tokens = tokens.reshape(count, n, measure.dim)
            weights = torch.softmax(tokens @ tilt, dim=-1).unsqueeze(-1)
            means = (weights * tokens).sum(1)
            centred = tokens - means.unsqueeze(1)
            spread += (centred.mT @ (weights * centred)).sum(0)
            deviations = means @ value.mT - limit
            total += deviations.sum(0)
            error += deviations.mT @ deviations
            squares.append(deviations.square().sum(-1))
        size = torch.cat(squares)
        quantile = math.sqrt(2) * float(
            torch.erfinv(torch.tensor(self.confidence, dtype=torch.float64))
        )
        centre = float(size.mean())
        radius = quantile * float(size.std()) / math.sqrt(self.prompts)
        return SimulatedMoments(
            mean=limit + total / self.prompts,
            error=error / self.prompts,
            jacobian=value @ spread / self.prompts,
            interval=(centre - radius, centre + radius),
        )
