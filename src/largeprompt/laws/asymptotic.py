r"""The delta method: the error of a long prompt of tokens of any law.

A ratio of two means, $T_n = \sum_i W_i V x_i / \sum_i W_i$ with the normalised masses
$W_i = e^{u \cdot x_i - \Lambda(u)}$, is nearly linear in both once $n$ is large
(docs/theory.md, section 8). `attention.delta_method` finds the scalars of a head.
"""

import dataclasses
import math
from typing import ClassVar, final

from largeprompt.laws.phases import linear_length
from largeprompt.laws.status import Status


@final
@dataclasses.dataclass(frozen=True)
class DeltaMethod:
    r"""Leading order of bias and mean square error in $1/n$.

    $$ n\, E\|T_n - T\|^2 \to e^\kappa (\tau_C^2 + \|V D\|^2), \qquad
       n\, (E[T_n] - T) \to -e^\kappa V D, $$

    with $D$ the difference of the tilted means at $2u$ and $u$.

    Attributes:
        n: The prompt length.
        excess: $\kappa = \Lambda(2u) - 2\Lambda(u)$; for a Gaussian $s^2$.
        spread: $\tau_C^2 = \mathrm{tr}(V C(2u) V^\top)$, $C(2u)$ the covariance at the
            tilt $2u$; for a Gaussian $\mathrm{tr}(V G V^\top)$.
        shift: $\|V D\|^2$; for a Gaussian $\|V G u\|^2$.
    """

    status: ClassVar[Status] = Status.ASYMPTOTIC
    n: float
    excess: float
    spread: float
    shift: float

    def __post_init__(self) -> None:
        """Check the range of the scalars."""
        if not self.n >= 1:
            raise ValueError(f"n must be a number of at least 1; got {self.n}")
        for name in ("excess", "spread", "shift"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name} must be finite and at least 0; got {value}")

    @property
    def inverse_ess(self) -> float:
        r"""$e^\kappa/n$, the limit of the sum of squared weights."""
        # an exponent beyond 700 is far outside the method's range anyway
        return math.exp(min(self.excess - math.log(self.n), 700.0))

    @property
    def mean_square_error(self) -> float:
        r"""$E\|T_n - T\|^2$ to leading order."""
        return self.inverse_ess * (self.spread + self.shift)

    @property
    def bias(self) -> float:
        r"""$\|E[T_n] - T\|$ to leading order."""
        return self.inverse_ess * math.sqrt(self.shift)

    @property
    def reliable_from(self) -> float:
        r"""$e^{2\kappa}$, below which the formula is not to be used.

        For Gaussian tokens that is the end of the linear phase: at shorter prompts the
        second moment of the masses is carried by tokens that a prompt does not hold,
        and the true error is smaller, by a factor of 100 at $n = 4096$, $s^2 = 9$.
        """
        return linear_length(self.excess)
