r"""Gaussian moments of quadratic polynomials: what closed-form risks are made of."""

import dataclasses
from typing import final

from jaxtyping import Float
from torch import Tensor


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Quadratic:
    r"""The polynomial $q(w) = q_0 + q_1 \cdot w + w^\top Q w$, $Q$ symmetric."""

    constant: Float[Tensor, ""]
    linear: Float[Tensor, " d"]
    matrix: Float[Tensor, "d d"]

    def mean(self, cov: Float[Tensor, "d d"]) -> Float[Tensor, ""]:
        r"""Return $E q(w) = q_0 + \mathrm{tr}(Q W)$ for $w \sim N(0, W)$."""
        return self.constant + (self.matrix * cov).sum()

    def mean_product(
        self, other: "Quadratic", cov: Float[Tensor, "d d"]
    ) -> Float[Tensor, ""]:
        r"""Return the mean of a product for $w \sim N(0, W)$.

        $$ E[q(w) r(w)] = E q\, E r + q_1^\top W r_1
           + 2\, \mathrm{tr}(Q W R W) . $$
        """
        crossed = ((self.matrix @ cov) * (other.matrix @ cov).mT).sum()
        linear = self.linear @ cov @ other.linear
        return self.mean(cov) * other.mean(cov) + linear + 2 * crossed


def mean_squared_cubic(
    form: Float[Tensor, "d d"], by: Float[Tensor, " d"], cov: Float[Tensor, "d d"]
) -> Float[Tensor, ""]:
    r"""Return $E[(b \cdot x)^2 (x^\top A x)^2]$ for $x \sim N(0, C)$.

    With $M = \frac12(A + A^\top)$, $B = b b^\top$ and $t = \mathrm{tr}(M C)$,

    $$ b^\top C b\, (t^2 + 2\,\mathrm{tr}(MCMC)) + 4 t\, b^\top C M C b
       + 8\, b^\top C M C M C b . $$
    """
    half = (form + form.mT) / 2 @ cov  # M C
    trace, square = half.trace(), (half * half.mT).sum()
    once = half @ by  # M C b; transposes as b'C M
    read = cov @ by
    return (
        (read @ by) * (trace**2 + 2 * square)
        + 4 * trace * (read @ once)
        + 8 * (read @ (half @ once))
    )
