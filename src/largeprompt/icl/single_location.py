r"""Single-location regression: the answer sits in one token, and no limit finds it.

One of `n` standard normal tokens, at a hidden place, is shifted by $\sqrt\nu\, k$; the
answer is $v \cdot x$ of that token, plus noise, with unit vectors $k \perp v$. The law
of the tokens tends to that of the others as the prompt grows, so the infinite-prompt
limit predicts nothing, at any size of the tilt. Softmax finds the token all the same
while $\nu$ is well above $2 \log n$, the square of the largest of the other logits:
long prompts do not always make softmax linear (Duranthon et al., 2025).
"""

import dataclasses
import math
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.laws.laplace import STEP, laplace_moments, outer_grid


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LocatedPrompts:
    """A batch of prompts with the answer in one token.

    Attributes:
        x: The tokens.
        place: Which token holds the answer.
        answer: What is to be predicted.
    """

    x: Float[Tensor, "b n d"]
    place: Tensor
    answer: Float[Tensor, " b"]


@final
@dataclasses.dataclass(frozen=True)
class SingleLocationTask:
    r"""The law of prompts of single-location regression.

    The shift is along the first axis, $k = e_1$, the answer along the last, $v = e_d$.

    Attributes:
        dim: $d \ge 2$.
        signal: $\nu > 0$, the squared size of the shift.
        noise_variance: Of the answer.
    """

    dim: int
    signal: float
    noise_variance: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: One is outside its range.
        """
        if self.dim < 2:
            raise ValueError(f"dim must be at least 2; got {self.dim}")
        if not 0 < self.signal < math.inf:
            raise ValueError(
                f"signal must be a finite number above 0; got {self.signal}"
            )
        if not 0 <= self.noise_variance < math.inf:
            raise ValueError(
                "noise_variance must be a finite number of at least 0; "
                f"got {self.noise_variance}"
            )

    @torch.no_grad()
    def sample(self, batch: int, n: int, generator: torch.Generator) -> LocatedPrompts:
        """Draw prompts of `n` tokens; float64.

        Raises:
            ValueError: `batch` or `n` is below 1.
        """
        if batch < 1 or n < 1:
            raise ValueError(f"batch and n must be at least 1; got {batch} and {n}")
        double = torch.float64
        x = torch.randn(batch, n, self.dim, generator=generator, dtype=double)
        place = torch.randint(n, (batch,), generator=generator)
        rows = torch.arange(batch)
        x[rows, place, 0] += math.sqrt(self.signal)
        noise = torch.randn(batch, generator=generator, dtype=double)
        answer = x[rows, place, -1] + math.sqrt(self.noise_variance) * noise
        return LocatedPrompts(x, place, answer)

    @property
    def limit_risk(self) -> float:
        """The risk of the infinite-prompt limit, whatever the tilt: that of silence."""
        return 1.0 + self.noise_variance

    def softmax_risk(self, n: int, tilt: float) -> float:
        r"""Return the exact risk of the head with logits $s\, x_1$ and values $x_d$.

        Given the logits the values are standard normal, so with $w_0$ the weight of the
        token that holds the answer the risk is
        $\sigma^2 + E[(1 - w_0)^2 + \sum_{i \ne 0} w_i^2]$: two integrals of the kind of
        docs/theory.md, section 2, with one factor of another law (section 11.6).

        Args:
            n: Prompt length, at least 1.
            tilt: $s > 0$.

        Raises:
            ValueError: An argument is outside its range.
        """
        if n < 1 or not 0 < tilt <= 20:
            raise ValueError(
                f"n must be at least 1 and tilt in (0, 20]; got {n} and {tilt}"
            )
        shift = tilt * math.sqrt(self.signal)
        plain = outer_grid(n, tilt)
        low = plain[0] - shift  # there even the shifted token has no mass
        tau = low + STEP * np.arange(math.ceil((plain[-1] - low) / STEP) + 1)
        other, own = laplace_moments(tau, tilt), laplace_moments(tau + shift, tilt)
        absent = np.exp((n - 1) * other.log_transform)
        one_less = np.exp((n - 2) * other.log_transform + own.log_transform)
        own_weight = STEP * own.first @ absent
        own_square = STEP * own.second @ absent
        other_squares = (n - 1) * STEP * other.second @ one_less
        missed = 1 - 2 * own_weight + own_square
        return float(missed + other_squares) + self.noise_variance
