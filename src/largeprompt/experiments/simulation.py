r"""Errors of attention over drawn prompts: the output and both of its gradients.

Given a tilt $u = U z$, the weighted mean $t_n$ and covariance $S_n$ of the tokens
decide all three: $T_n = V t_n$, $\partial T_n/\partial U = V S_n \otimes z$ and
$(\partial T_n/\partial V)_{abi} = \delta_{ab} (t_n)_i$. Their squared (Frobenius)
distances to the limits are $\|V(t_n - t)\|^2$, $\|V(S_n - S)\|^2 \|z\|^2$ and
$v \|t_n - t\|^2$, with $v$ the number of rows of $V$.
"""

import dataclasses
import enum
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention import Head
from largeprompt.measures import Measure

BLOCK = 2**20  # numbers drawn at once


class Quantity(enum.StrEnum):
    """What an error is of."""

    OUTPUT = "output"
    BILINEAR_GRADIENT = "U gradient"
    VALUE_GRADIENT = "V gradient"


@final
@dataclasses.dataclass(frozen=True, eq=False)
class SquaredErrors:
    """Squared distances to the limit, one a query and drawn prompt."""

    output: Float[Tensor, "queries prompts"]
    bilinear_gradient: Float[Tensor, "queries prompts"]
    value_gradient: Float[Tensor, "queries prompts"]

    def of(self, quantity: Quantity) -> Float[Tensor, "queries prompts"]:
        """Return the errors of one quantity."""
        match quantity:
            case Quantity.OUTPUT:
                return self.output
            case Quantity.BILINEAR_GRADIENT:
                return self.bilinear_gradient
            case Quantity.VALUE_GRADIENT:
                return self.value_gradient


@torch.no_grad()
def squared_errors(
    head: Head,
    measure: Measure,
    queries: Float[Tensor, "m e"],
    n: int,
    prompts: int,
    generator: torch.Generator,
) -> SquaredErrors:
    """Draw prompts of `n` tokens for every query and measure their errors.

    Args:
        head: The head.
        measure: The law of a token.
        queries: The tokens that ask.
        n: The prompt length, at least 1.
        prompts: Prompts for each query, at least 1; none is used twice.
        generator: The source of the draws.

    Raises:
        ValueError: A tilt is outside the domain of the law: there is no limit.
    """
    tilts = head.tilt(queries)
    if not measure.log_mgf(tilts).isfinite().all():
        raise ValueError(
            "every tilt U z must lie in the domain of log_mgf; got one that does not: "
            f"{tilts[~measure.log_mgf(tilts).isfinite()][0].tolist()}"
        )
    blocks = []
    rows = max(1, BLOCK // (n * measure.dim))
    for tilt, z in zip(tilts, queries, strict=True):
        for start in range(0, prompts, rows):
            count = min(rows, prompts - start)
            tokens = measure.sample(count * n, generator)
            tokens = tokens.reshape(count, n, measure.dim)
            blocks.append(prompt_errors(head, measure, tilt, z, tokens))
    columns = (torch.cat(column) for column in zip(*blocks, strict=True))
    return SquaredErrors(*(column.reshape(len(queries), -1) for column in columns))


def prompt_errors(
    head: Head,
    measure: Measure,
    tilt: Float[Tensor, " d"],
    z: Float[Tensor, " e"],
    tokens: Float[Tensor, "p n d"],
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the squared errors of the output, U gradient and V gradient, a prompt."""
    limit, limit_cov = measure.tilted_mean(tilt), measure.tilted_cov(tilt)
    weights = torch.softmax(tokens @ tilt, dim=-1).unsqueeze(-1)  # p n 1
    offset = tokens - limit
    error = (weights * offset).sum(-2)
    second = (weights * offset).mT @ offset
    cov_error = second - error.unsqueeze(-1) * error.unsqueeze(-2) - limit_cov
    return (
        (error @ head.value.mT).square().sum(-1),
        (head.value @ cov_error).square().sum((-1, -2)) * z.square().sum(),
        len(head.value) * error.square().sum(-1),
    )
