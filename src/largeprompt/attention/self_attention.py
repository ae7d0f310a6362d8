"""A head whose query stands among its own keys: the exact law for Gaussian tokens."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention.head import Head
from largeprompt.laws.self_attention import SelfAttentionLaw, self_attention_law
from largeprompt.measures import Gaussian


@final
@dataclasses.dataclass(frozen=True, eq=False)
class SelfAttentionMoments:
    r"""Moments of the output $T_n$ over the query's token and `n` others, given $z$.

    Attributes:
        law: The scalars that everything follows from.
        limit: $T = V m + V G u$, the output on the law itself.
        mean: $E[T_n \mid z]$.
        error: $E[(T_n - T)(T_n - T)^\top \mid z]$.
    """

    law: SelfAttentionLaw
    limit: Float[Tensor, " v"]
    mean: Float[Tensor, " v"]
    error: Float[Tensor, "v v"]

    @property
    def mean_square_error(self) -> float:
        r"""$E[\|T_n - T\|^2 \mid z]$."""
        return float(self.error.trace())


@torch.no_grad()
def self_attention_moments(
    head: Head, gaussian: Gaussian, z: Float[Tensor, " d"], n: int
) -> SelfAttentionMoments:
    r"""Return the exact moments of a head that sees $z$ itself and `n` Gaussian tokens.

    Args:
        head: The head; its queries and keys come from tokens of one dimension.
        gaussian: The law of the other tokens, independent of $z$.
        z: The token that asks and is seen, fixed.
        n: The number of other tokens.

    Raises:
        ValueError: If query and key tokens differ in dimension.

    Source: derived in docs/theory.md, section 5.
    """
    if head.query.shape[1] != head.key.shape[1]:
        raise ValueError(
            "the query's token must be of the dimension of the keys' tokens; got "
            f"{head.query.shape[1]} and {head.key.shape[1]}"
        )
    token, value = z.double(), head.value.double()
    tilt = head.tilt(z).double()
    cov, mean = gaussian.cov.double(), gaussian.mean.double()
    shift = cov @ tilt
    law = self_attention_law(
        n, max(float(tilt @ shift), 0.0), float(tilt @ (token - mean))
    )
    response = value @ shift
    limit = value @ mean + response
    displacement = value @ token - limit
    crossed = torch.outer(displacement, response)
    error = law.own_square * torch.outer(displacement, displacement)
    error -= law.own_cross * (crossed + crossed.mT)
    error += law.parallel_excess * torch.outer(response, response)
    error += law.inverse_ess * value @ cov @ value.mT
    return SelfAttentionMoments(
        law=law,
        limit=limit,
        mean=limit + law.own_weight * displacement - law.inverse_ess * response,
        error=error,
    )
