"""How far a head's output over a finite prompt is from its limit, for any measure."""

import dataclasses
import math
from typing import ClassVar, final

from typing_extensions import override

from largeprompt.laws.bounds.base import Bound, check_nonnegative
from largeprompt.laws.bounds.search import minimum
from largeprompt.laws.bounds.weights import WeightTail
from largeprompt.laws.status import Status


@final
@dataclasses.dataclass(frozen=True)
class OutputBound(Bound):
    r"""Attention over i.i.d. tokens against its limit, with explicit constants.

    With $u$ the tilt, $t = \nabla\Lambda(u)$, $\kappa = \Lambda(2u) - 2\Lambda(u)$,
    $\tau^2 = E_{2u}\|V(x - t)\|^2$ and $\omega^2 = E\|V(x - t)\|^2$,

    $$ E\|T_n - T\|^2 \le \min_r \frac{n e^\kappa \tau^2}{(n-1)^2 (1-r)^2}
       + n \omega^2 e^{-(n-1) r^2 / 2 e^\kappa}, $$

    $$ \rho(\delta) = \min_r \frac{1}{1-r}
       \sqrt{\frac{e^\kappa \tau^2}{n (\delta - e^{-n r^2 / 2 e^\kappa})}} . $$

    The gradient in $V$ obeys the same theorem: its error is
    $\sqrt{v}\,\|t_n - t\|$ in the Frobenius norm, $v$ the number of rows of $V$.

    Attributes:
        kappa: $\kappa \ge 0$; $s^2$ for Gaussian tokens.
        tau_squared: $\tau^2$, the spread of the values under the tilt $2u$.
        omega_squared: $\omega^2$, their spread around the limit, untilted.
    """

    quantity: ClassVar[str] = "output, gradient in $V$"
    statement: ClassVar[str] = (
        r"$E\|T_n - T\|^2 \le \frac{n e^\kappa \tau^2}{(n-1)^2 (1-r)^2}"
        r" + n \omega^2 e^{-(n-1) r^2 / 2 e^\kappa}$;"
        r" $\rho = \frac{1}{1-r}"
        r" \sqrt{\frac{e^\kappa \tau^2}{n (\delta - e^{-n r^2 / 2 e^\kappa})}}$"
    )
    hypotheses: ClassVar[str] = (
        r"i.i.d. tokens; $0$ and $2u$ interior to the domain of $\Lambda$"
    )
    cites: ClassVar[str] = "maurer:03, inequality (1.1)"
    derivation: ClassVar[str] = "equations (9.4) and (9.5)"
    status: ClassVar[Status] = Status.BOUND

    kappa: float
    tau_squared: float
    omega_squared: float

    def __post_init__(self) -> None:
        """Check that the moments can be those of a measure."""
        check_nonnegative(**dataclasses.asdict(self))

    @override
    def exists_beyond(self, delta: float | None = None) -> float:
        tail = WeightTail(self.kappa)
        if math.inf in (self.tau_squared, self.omega_squared):
            return math.inf
        if delta is None:
            return 1 + tail.length(nats=1)
        return tail.length(nats=-math.log(delta))

    @override
    def _mse(self, n: float) -> float:
        tail = WeightTail(self.kappa)
        chebyshev = n * tail.second_moment * self.tau_squared / (n - 1) ** 2
        return minimum(
            lambda r: (
                chebyshev / (1 - r) ** 2
                + n * self.omega_squared * tail.probability(n - 1, r)
            ),
            tail.shortfall(n - 1, nats=1),
            1.0,
        )

    @override
    def _radius(self, n: float, delta: float) -> float:
        tail = WeightTail(self.kappa)
        variance = tail.second_moment * self.tau_squared / n
        return minimum(
            lambda r: math.sqrt(variance / (delta - tail.probability(n, r))) / (1 - r),
            tail.shortfall(n, nats=-math.log(delta)),
            1.0,
        )
