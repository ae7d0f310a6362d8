r"""The tokens of a summarised set while they are held, and draws from them."""

import dataclasses
from typing import Self, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor


@final
@dataclasses.dataclass(frozen=True, eq=False)
class HeldTokens:
    r"""The tokens that one set stands for, with what is known of all their values.

    Attributes:
        key: Their keys.
        value: Their values, or what a control variate leaves of them.
        value_mean: The mean value.
        value_reach: $\max_j \|v_j - \bar v\|$: no value lies farther from the mean.
    """

    key: Float[Tensor, "*b n k"]
    value: Float[Tensor, "*b n v"]
    value_mean: Float[Tensor, "*b v"]
    value_reach: Float[Tensor, "*b"]

    @classmethod
    def of(cls, key: Float[Tensor, "*b n k"], value: Float[Tensor, "*b n v"]) -> Self:
        """Return the tokens with the mean and the reach of their values.

        Raises:
            ValueError: There is no token.
        """
        if key.shape[-2] == 0:
            raise ValueError("a set must hold at least one token; got none")
        mean = value.mean(-2)
        distances = torch.linalg.vector_norm(value - mean[..., None, :], dim=-1)
        return cls(key, value, mean, distances.amax(-1))

    def drawn(
        self, tilt: Float[Tensor, "*b m k"], rows: Int64[Tensor, "*b m j"]
    ) -> tuple[Float[Tensor, "*b m j"], Float[Tensor, "*b m j v"]]:
        """Return the logits of the drawn tokens, and their values less the mean."""
        key = torch.take_along_dim(self.key[..., None, :, :], rows[..., None], -2)
        value = torch.take_along_dim(self.value[..., None, :, :], rows[..., None], -2)
        logits = (key @ tilt[..., None]).squeeze(-1)
        return logits, value - self.value_mean[..., None, None, :]


def draw(
    log_proposal: Float[Tensor, "*b m n"], draws: int, generator: torch.Generator
) -> Int64[Tensor, "*b m j"]:
    """Draw tokens for each query, independently and with replacement.

    Args:
        log_proposal: The logarithm of each token's probability, up to a constant.
        draws: How many tokens to draw for each query, at least 2.
        generator: Where the randomness comes from.

    Raises:
        ValueError: Fewer than two draws leave their variance unknown.
    """
    if draws < 2:
        raise ValueError(f"draws must be at least 2; got {draws}")
    # cumulated in single precision, thousands of small probabilities would drift
    chances = log_proposal.double().softmax(-1)
    rows = torch.multinomial(
        chances.reshape(-1, chances.shape[-1]),
        draws,
        replacement=True,
        generator=generator,
    )
    return rows.view(*chances.shape[:-1], draws)
