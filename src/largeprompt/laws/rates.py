r"""How fast the error falls with the prompt length when the query is random.

For $z \sim N(0, S_z)$ the logit variance $z^\top U^\top G U z$ is random too. Most
queries are in the linear phase, rare ones are frozen at any length, and the average is
a compromise between the two that one number decides: $\lambda$, the top eigenvalue of
$M = S_z^{1/2} U^\top G U S_z^{1/2}$ (docs/theory.md, section 7).
"""

import dataclasses
import math
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from largeprompt.laws.status import Status


@final
@dataclasses.dataclass(frozen=True)
class RateExponents:
    r"""Exponents $r$ of an error that falls like $n^{-r}$, averaged over queries.

    Attributes:
        top_eigenvalue: $\lambda$.
        mean_square: Exponent of the mean square error.
        typical: Exponent of the squared error on a typical prompt.
        logarithmic: Whether a power of $\log n$ multiplies the mean square: at
            $\lambda = \frac12$ exactly it is $(\log n)^{3/2}/n$.
        status: A proven limit for $\lambda < \frac12$ (where `limit_constant` is
            finite); beyond, large deviations that exact numbers confirm.
    """

    top_eigenvalue: float
    mean_square: float
    typical: float
    logarithmic: bool
    status: Status


def rate_exponents(top_eigenvalue: float) -> RateExponents:
    r"""Return the exponents at $\lambda$ = `top_eigenvalue`.

    $$ r = 1 \;(\lambda \le \tfrac12), \qquad
       r = \frac{\sqrt{1 + 4/\lambda} - 1}{2} \;(\lambda > \tfrac12); \qquad
       r_{\mathrm{typical}} = \min\Big(1, \frac{2}{1 + 2\lambda}\Big). $$

    Raises:
        ValueError: `top_eigenvalue` is negative or not a finite number.

    Source: derived in docs/theory.md, section 7; the constant of Boursier and Boyer
    (2026), Proposition 3.1, whose exponent is $c/\sigma^2$.
    """
    if not 0 <= top_eigenvalue < math.inf:
        raise ValueError(
            f"top_eigenvalue must be a number of at least 0; got {top_eigenvalue}"
        )
    proven = top_eigenvalue < 0.5
    return RateExponents(
        top_eigenvalue=top_eigenvalue,
        mean_square=(
            1.0
            if top_eigenvalue <= 0.5
            # (sqrt(1 + 4/x) - 1)/2 without cancellation at large x
            else 2 / top_eigenvalue / (math.sqrt(1 + 4 / top_eigenvalue) + 1)
        ),
        typical=min(1.0, 2 / (1 + 2 * top_eigenvalue)),
        logarithmic=top_eigenvalue == 0.5,
        status=Status.ASYMPTOTIC if proven else Status.NUMERICAL,
    )


def limit_constant(
    eigenvalues: ArrayLike, responses: ArrayLike, variance: float
) -> float:
    r"""Return $\lim_n n\, E_z E\|T_n - T\|^2$, infinite from $\lambda = \frac12$ on.

    $$ \det(I - 2M)^{-1/2} \Big[ \mathrm{tr}(V G V^\top)
       + \sum_i \frac{b_i}{1 - 2\lambda_i} \Big]. $$

    Args:
        eigenvalues: $\lambda_i$, the spectrum of $M$.
        responses: $b_i = \|B e_i\|^2$ with $B = V G U S_z^{1/2}$ and $e_i$ the unit
            eigenvectors of $M$.
        variance: $\mathrm{tr}(V G V^\top)$.

    Source: derived in docs/theory.md, section 7.
    """
    spectrum = np.asarray(eigenvalues, dtype=float)
    weights = np.asarray(responses, dtype=float)
    if spectrum.max(initial=0.0) >= 0.5:
        return math.inf
    gap = 1 - 2 * spectrum
    return float((variance + (weights / gap).sum()) / np.sqrt(gap.prod()))
