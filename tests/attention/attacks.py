"""Prompts drawn from six laws, and the errors that bounds speak of.

The errors are computed from weights and tokens, by code that shares nothing with the
bounds: softmax, weighted mean, weighted covariance.
"""

import dataclasses
import functools

import torch
from torch import Tensor

from largeprompt.attention import Head
from largeprompt.measures import (
    Gaussian,
    Laplace,
    Measure,
    Mixture,
    Rademacher,
    UniformCube,
    UniformSphere,
)

N, ADDED = 3000, 900
TRIALS, BLOCK = 1200, 30  # prompts in all, and drawn at once
D = 3


def tensor(values) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


COV = tensor([[1.0, 0.5, 0.25], [0.5, 1.0, 0.5], [0.25, 0.5, 1.0]])
LAWS: dict[str, Measure] = {
    "gaussian": Gaussian(tensor([0.3, -0.1, 0.2]), COV),
    "rademacher": Rademacher(torch.ones(D, dtype=torch.float64)),
    "cube": UniformCube(tensor([1.5, 1.0, 2.0])),
    "sphere": UniformSphere(torch.zeros(D, dtype=torch.float64), tensor(1.7)),
    "laplace": Laplace(tensor([0.7, 0.5, 0.6])),
    "mixture": Mixture(
        (Gaussian(tensor([1.0, 0.0, -1.0]), COV / 2), Rademacher(tensor([0.5, 1, 1]))),
        tensor([-1.0, 0.0]),
    ),
}
HEAD = Head(
    key=tensor([[1.0, 0.2, 0.0], [0.0, 1.0, -0.3]]),
    query=tensor([[0.5, 0.1], [-0.2, 0.4]]),
    value=tensor([[1.0, 0.0, 0.5], [-0.4, 1.2, 0.0]]),
    scale=0.8,
)
Z = tensor([0.7, 0.4])


@dataclasses.dataclass(frozen=True, eq=False)
class Errors:
    """Squared norms of errors, one a drawn prompt."""

    output: Tensor
    value_gradient: Tensor
    bilinear_gradient: Tensor
    drift: Tensor


@functools.cache
def errors(law: str) -> Errors:
    """Draw TRIALS prompts of N and N + ADDED nested tokens and measure their errors."""
    measure = LAWS[law]
    generator = torch.Generator().manual_seed(20261201)
    tilt = HEAD.tilt(Z)
    limit = HEAD.output(measure, Z)
    value_limit = HEAD.jacobian_value(measure, Z)
    bilinear_limit = HEAD.jacobian_bilinear_form(measure, Z)
    blocks = []
    for _ in range(TRIALS // BLOCK):
        draws = measure.sample(BLOCK * (N + ADDED), generator)
        longer = draws.reshape(BLOCK, N + ADDED, D)
        tokens = longer[:, :N]
        mean, cov = weighted_moments(tokens, tilt)
        grown, _ = weighted_moments(longer, tilt)
        output = mean @ HEAD.value.mT
        value = torch.einsum("ac,ni->naci", torch.eye(2, dtype=mean.dtype), mean)
        bilinear = torch.einsum("nai,j->naij", HEAD.value @ cov, Z)
        errors_of_block = [
            output - limit,
            value - value_limit,
            bilinear - bilinear_limit,
            grown @ HEAD.value.mT - output,
        ]
        blocks.append([e.flatten(1).square().sum(-1) for e in errors_of_block])
    return Errors(*(torch.cat(column) for column in zip(*blocks, strict=True)))


def weighted_moments(tokens: Tensor, tilt: Tensor) -> tuple[Tensor, Tensor]:
    """The mean and the covariance of each prompt under its softmax weights."""
    weights = torch.softmax(tokens @ tilt, -1)
    mean = (weights.unsqueeze(-1) * tokens).sum(-2)
    square = (weights.unsqueeze(-1) * tokens).mT @ tokens
    return mean, square - mean.unsqueeze(-1) * mean.unsqueeze(-2)


def beyond(squares: Tensor, radius: float) -> int:
    """How many errors are larger than the radius."""
    return int((squares > radius**2).sum())


def beyond_share(squares: Tensor, mean: float, share: float) -> int:
    r"""Turn a claim on a mean into one on a probability, exactly.

    With $u$ uniform, $P(e > u m / p) = E \min(p e / m, 1) \le p$ if $E e \le m$: the
    number returned is binomial with a probability of at most `share`.
    """
    generator = torch.Generator().manual_seed(20261202)
    uniform = torch.rand(len(squares), generator=generator, dtype=torch.float64)
    return int((squares > uniform * mean / share).sum())
