"""How far the gradient in the bilinear form is from its limit, for any measure."""

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
class BilinearGradientBound(Bound):
    r"""The gradient $V S_n \otimes z$ in $U$ against its limit $V S \otimes z$.

    $S_n$ is the weighted covariance of the tokens, $S$ the tilted one. With
    $y = x - t$, $W$ the unnormalised weight and
    $V(S_n - S) = V N / M_n - V(t_n - t)(t_n - t)^\top$,

    $$ E\|V(S_n - S)\|^2 \le \min_r \Big( \sqrt{\tfrac{A}{n}} \frac{1}{\mu}
       + \frac{\sqrt{B_n}}{\mu^2} \Big)^2 + 2 \big( n \rho + n(n-1)
       \omega_V^2 \omega^2 + \|V S\|^2 \big) e^{-(n-2) r^2 / 2 e^\kappa}, $$

    $\mu = (1 - 2/n)(1 - r)$, $A = E[W^2 \|V(y y^\top - S)\|^2]$,
    $B_n = 3 e^{2\kappa} \tau_V^2 \tau^2 / n^2 + E[W^4 \|V y\|^2 \|y\|^2] / n^3$, and

    $$ \rho(\delta) = \min_{r, q} \sqrt{\frac{A}{n q \delta_r}} \frac{1}{1 - r}
       + \frac{e^\kappa \tau_V \tau}{n (1 - q) \delta_r (1 - r)^2}, \quad
       \delta_r = \delta - e^{-n r^2 / 2 e^\kappa}; $$

    both times a power of $\|z\|$. Norms are Frobenius norms.

    Attributes:
        kappa: $\kappa = \Lambda(2u) - 2\Lambda(u)$.
        query_norm: $\|z\|$.
        fluctuation: $A$.
        tau_squared_value: $\tau_V^2 = E_{2u} \|V y\|^2$.
        tau_squared: $\tau^2 = E_{2u} \|y\|^2$.
        fourth_weighted: $E[W^4 \|V y\|^2 \|y\|^2]$; infinite unless $4u$ is in the
            domain of $\Lambda$, and then there is no mean square.
        fourth: $\rho = E[\|V y\|^2 \|y\|^2]$.
        omega_squared_value: $\omega_V^2 = E \|V y\|^2$.
        omega_squared: $\omega^2 = E \|y\|^2$.
        limit_squared: $\|V S\|^2$.
    """

    quantity: ClassVar[str] = "gradient in $U$"
    statement: ClassVar[str] = (
        r"$\rho = \sqrt{\frac{A}{n q \delta_r}} \frac{1}{1 - r}"
        r" + \frac{e^\kappa \tau_V \tau}{n (1-q) \delta_r (1-r)^2}$,"
        r" $\delta_r = \delta - e^{-n r^2 / 2 e^\kappa}$; mean square in the docstring"
    )
    hypotheses: ClassVar[str] = (
        r"i.i.d. tokens; $0$ and $2u$ interior to the domain of $\Lambda$;"
        r" for the mean square $4u$ too"
    )
    cites: ClassVar[str] = "maurer:03, inequality (1.1)"
    derivation: ClassVar[str] = "equations (9.8) and (9.9)"
    status: ClassVar[Status] = Status.BOUND

    kappa: float
    query_norm: float
    fluctuation: float
    tau_squared_value: float
    tau_squared: float
    fourth_weighted: float
    fourth: float
    omega_squared_value: float
    omega_squared: float
    limit_squared: float

    def __post_init__(self) -> None:
        """Check that the moments can be those of a measure."""
        check_nonnegative(**dataclasses.asdict(self))

    @override
    def exists_beyond(self, delta: float | None = None) -> float:
        needed = [self.fluctuation, self.tau_squared_value, self.tau_squared]
        if delta is None:
            needed += [self.fourth_weighted, self.fourth]
        if math.inf in needed:
            return math.inf
        tail = WeightTail(self.kappa)
        if delta is None:
            return 2 + tail.length(nats=2)
        return tail.length(nats=-math.log(delta))

    @override
    def _mse(self, n: float) -> float:
        tail = WeightTail(self.kappa)
        first = math.sqrt(self.fluctuation / n)
        pairs = tail.second_moment**2 * self.tau_squared_value * self.tau_squared
        second = math.sqrt(3 * pairs / n**2 + self.fourth_weighted / n**3)
        most = 2 * (
            n * self.fourth
            + n * (n - 1) * self.omega_squared_value * self.omega_squared
            + self.limit_squared
        )

        def at(r: float) -> float:
            mass = (1 - 2 / n) * (1 - r)
            bulk = (first / mass + second / mass**2) ** 2
            return bulk + most * tail.probability(n - 2, r)

        lowest = tail.shortfall(n - 2, nats=2)
        return self.query_norm**2 * minimum(at, lowest, 1.0)

    @override
    def _radius(self, n: float, delta: float) -> float:
        tail = WeightTail(self.kappa)
        spreads = math.sqrt(self.tau_squared_value) * math.sqrt(self.tau_squared)

        def at(r: float) -> float:
            left = delta - tail.probability(n, r)
            first = math.sqrt(self.fluctuation / (n * left)) / (1 - r)
            second = tail.second_moment * spreads / (n * left * (1 - r) ** 2)
            return minimum(lambda q: first / math.sqrt(q) + second / (1 - q), 0.0, 1.0)

        lowest = tail.shortfall(n, nats=-math.log(delta))
        return self.query_norm * minimum(at, lowest, 1.0)
