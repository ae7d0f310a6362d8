"""What a head answers at one prompt length: the exact law for Gaussian tokens."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention.head import Head
from largeprompt.laws import gaussian_law
from largeprompt.measures import Gaussian


@final
@dataclasses.dataclass(frozen=True, eq=False)
class FinitePromptLaw:
    r"""Moments of a head's output $T_n$ over prompts of $n$ independent tokens.

    Attributes:
        mean: The expected output $\mathbb{E} T_n = V m + (1 - \phi) V \Sigma U z$.
        mean_square_error: $\mathbb{E}\|T_n - T\|^2$ around the linear limit $T$.
    """

    mean: Float[Tensor, "*batch v"]
    mean_square_error: Float[Tensor, "*batch"]


def finite_prompt_law(
    head: Head, gaussian: Gaussian, z: Float[Tensor, "*batch e"], n: int
) -> FinitePromptLaw:
    r"""Return the exact moments of a head's output on `n` Gaussian tokens.

    Two scalar functions of $n$ and of the logit variance $u^\top \Sigma u$, $u = U z$,
    give both moments; see `largeprompt.laws.gaussian_law`. Carries no gradient.

    Args:
        head: The head.
        gaussian: The law of the tokens.
        z: The tokens that ask.
        n: The number of tokens in the prompt.

    Raises:
        ValueError: If `n` or a logit variance is out of the range of `gaussian_law`.
    """
    with torch.no_grad():
        u = head.tilt(z)
        shift = u @ gaussian.cov
        logit_variance = (u * shift).sum(-1).clamp(min=0)
        response = shift @ head.value.mT
        variance = torch.trace(head.value @ gaussian.cov @ head.value.mT)
        law = gaussian_law(n, logit_variance.double().cpu().numpy())
        error = law.mean_square_error(
            response.square().sum(-1).double().cpu().numpy(), float(variance)
        )
        shrinkage = 1 - torch.as_tensor(law.inverse_ess).to(response)
        return FinitePromptLaw(
            mean=head.value @ gaussian.mean + shrinkage.unsqueeze(-1) * response,
            mean_square_error=torch.as_tensor(error).to(response),
        )
