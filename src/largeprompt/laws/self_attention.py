r"""The exact law when the query's own token stands among the keys.

One token $x_0 = z$ with the fixed logit $z^\top U z$, and $n$ Gaussian tokens. Given
$z$, the normaliser $e^{\ell_0} + \sum_i e^{s g_i}$ is still a sum of independent terms:
the Laplace trick gains the factor $e^{-t e^{\ell_0}}$ and nothing else changes
(docs/theory.md, section 5). The same law holds for any one token that does not
vary, an attention sink say.
"""

import dataclasses
import math
from typing import ClassVar, final

import numpy as np

from largeprompt.laws.exact import (
    LARGEST_LOGIT_VARIANCE,
    LARGEST_N,
    check_range,
)
from largeprompt.laws.laplace import DEPTH, STEP, laplace_moments, outer_grid
from largeprompt.laws.status import Status

SMALLEST_SCALE = 1e-9  # stands for zero: everything is even and analytic in the scale
LARGEST_OWN_LOGIT = 400.0


@final
@dataclasses.dataclass(frozen=True)
class SelfAttentionLaw:
    r"""Second moments of attention over one fixed and `n` Gaussian tokens.

    With $w_0$ the weight of the fixed token, $T = V m + V G u$ the limit and
    $\delta = V z - T$ the displacement of the fixed token's value from it,

    $$ E[T_n] = T + E[w_0]\, \delta - \phi\, V G u . $$

    Attributes:
        n: The number of Gaussian tokens, the fixed one not counted.
        logit_variance: $s^2$, of the Gaussian tokens.
        own_logit: $\ell_0 = u \cdot (z - m)$, against the mean logit of the others.
        own_weight: $E[w_0]$.
        own_square: $E[w_0^2]$.
        inverse_ess: $\phi = E \sum_{i \ge 1} w_i^2$, over the Gaussian tokens.
        own_cross: $-E[w_0 \sum_{i \ge 1} w_i (g_i - s)]/s$.
        parallel_excess: $(E(\sum_{i \ge 1} w_i (g_i - s))^2 - \phi)/s^2$.
    """

    status: ClassVar[Status] = Status.EXACT
    n: float
    logit_variance: float
    own_logit: float
    own_weight: float
    own_square: float
    inverse_ess: float
    own_cross: float
    parallel_excess: float

    def mean_square_error(
        self, displacement: float, alignment: float, response: float, variance: float
    ) -> float:
        r"""Return $E\|T_n - T\|^2$ of a head.

        Args:
            displacement: $\|\delta\|^2$.
            alignment: $\delta \cdot V G u$.
            response: $\|V G u\|^2$.
            variance: $\mathrm{tr}(V G V^\top)$.
        """
        return (
            self.own_square * displacement
            - 2 * self.own_cross * alignment
            + self.parallel_excess * response
            + self.inverse_ess * variance
        )


def self_attention_law(
    n: float, logit_variance: float, own_logit: float
) -> SelfAttentionLaw:
    r"""Return the exact law of one fixed and `n` Gaussian tokens.

    Args:
        n: Number of Gaussian tokens, from 1 to $10^{15}$.
        logit_variance: $s^2 = u^\top G u$ from 0 to 400.
        own_logit: $u \cdot (z - m)$, from $-400$ to 400.

    Raises:
        ValueError: An argument is outside its range or not a number.

    Source: derived in docs/theory.md, section 5.
    """
    check_range("n", np.array(float(n)), 1.0, LARGEST_N)
    check_range(
        "logit_variance", np.array(float(logit_variance)), 0.0, LARGEST_LOGIT_VARIANCE
    )
    check_range(
        "own_logit", np.array(float(own_logit)), -LARGEST_OWN_LOGIT, LARGEST_OWN_LOGIT
    )
    scale = max(math.sqrt(logit_variance), SMALLEST_SCALE)
    tau = outer_grid(n, scale)
    missing = math.ceil(max(0.0, tau[0] + own_logit + DEPTH) / STEP)
    tau = tau[0] + STEP * np.arange(-missing, len(tau), dtype=float)
    m = laplace_moments(tau, scale)
    own = np.exp(np.minimum(tau + own_logit, 7.0))  # e^{-own} is zero there already
    survival = STEP * np.exp(-own)
    nobody = survival * np.exp(n * m.log_transform)
    others = survival * n * np.exp((n - 1) * m.log_transform)
    pairs = survival * n * (n - 1) * np.exp((n - 2) * m.log_transform)
    curvature = m.second - 3 * m.third + m.fourth
    return SelfAttentionLaw(
        n=n,
        logit_variance=logit_variance,
        own_logit=own_logit,
        own_weight=float(nobody @ own),
        own_square=float(nobody @ own**2),
        inverse_ess=float(others @ m.second),
        own_cross=float(others @ (own * m.second)),
        parallel_excess=float(others @ curvature + pairs @ m.second**2),
    )
