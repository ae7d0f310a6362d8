"""How far the output may move when a prompt grows, for any measure."""

import dataclasses
import math
from typing import ClassVar, final

from typing_extensions import override

from largeprompt.laws.bounds.base import Bound, check_nonnegative
from largeprompt.laws.bounds.search import minimum
from largeprompt.laws.bounds.weights import WeightTail
from largeprompt.laws.status import Status

SPLITS = 64  # the shares of delta tried for the shorter prompt: multiples of 1/64


@final
@dataclasses.dataclass(frozen=True)
class TriangleDriftBound(Bound):
    r"""Two prompts of $n$ and $n + m$ tokens, through their common limit.

    $$ E\|T_{n+m} - T_n\|^2 \le \big(\sqrt{B_n} + \sqrt{B_{n+m}}\big)^2, \qquad
       \rho(\delta) = \min_q \rho_n(q\delta) + \rho_{n+m}((1-q)\delta) $$

    with $B$ and $\rho$ of any bound on the distance to the limit. The prompts may be
    nested, independent or anything else.

    Attributes:
        bound: A bound on the distance to the limit.
        added: $m \ge 0$, how many tokens longer the second prompt is.
    """

    quantity: ClassVar[str] = "drift between any two prompts"
    statement: ClassVar[str] = (
        r"$E\|T_{n+m} - T_n\|^2 \le (\sqrt{B_n} + \sqrt{B_{n+m}})^2$;"
        r" $\rho = \min_q \rho_n(q\delta) + \rho_{n+m}((1-q)\delta)$"
    )
    hypotheses: ClassVar[str] = "those of the bound it is made of"
    cites: ClassVar[str] = "boursier-boyer:26, Lemma 2.1 for the common limit"
    derivation: ClassVar[str] = "equation (9.10)"
    status: ClassVar[Status] = Status.BOUND

    bound: Bound
    added: float

    def __post_init__(self) -> None:
        """Check the number of tokens."""
        check_nonnegative(added=self.added)

    @override
    def exists_beyond(self, delta: float | None = None) -> float:
        if delta is None:
            return self.bound.exists_beyond()
        return min(
            max(
                self.bound.exists_beyond(share * delta),
                self.bound.exists_beyond((1 - share) * delta) - self.added,
            )
            for share in _shares()
        )

    @override
    def _mse(self, n: float) -> float:
        short, long = self.bound.mse(n), self.bound.mse(n + self.added)
        return (math.sqrt(short) + math.sqrt(long)) ** 2

    @override
    def _radius(self, n: float, delta: float) -> float:
        return min(
            self.bound.radius(n, share * delta)
            + self.bound.radius(n + self.added, (1 - share) * delta)
            for share in _shares()
        )


@final
@dataclasses.dataclass(frozen=True)
class NestedDriftBound(Bound):
    r"""A prompt of $n$ tokens that grows by $m$ more, its own tokens kept.

    With $D = e^\kappa \tau^2 (n + m + 2(e^\kappa - 1)) - 2 e^{2\kappa} \|V D_u\|^2$,
    $D_u = \nabla\Lambda(2u) - \nabla\Lambda(u)$, and moments as in `OutputBound`,

    $$ E\|T_{n+m} - T_n\|^2 \le \min_r
       \frac{n m D}{((n-1)(n+m-1))^2 (1-r)^4}
       + 4 (2n + m) \omega^2 e^{-(n-1) r^2 / 2 e^\kappa}, $$

    $$ \rho(\delta) = \min_r \frac{1}{n (n+m) (1-r)^2}
       \sqrt{\frac{n m D}{\delta - 2 e^{-n r^2 / 2 e^\kappa}}} . $$

    To leading order the mean square is $e^\kappa \tau^2 (1/n - 1/(n+m))$, as it must
    be: the triangle inequality would pay $(1/\sqrt n + 1/\sqrt{n+m})^2$.

    Attributes:
        kappa: $\kappa = \Lambda(2u) - 2\Lambda(u)$.
        tau_squared: $\tau^2 = E_{2u}\|V(x - t)\|^2$.
        omega_squared: $\omega^2 = E\|V(x - t)\|^2$.
        shift_squared: $\|V D_u\|^2$, at most $\tau^2$.
        added: $m \ge 0$, how many tokens are added.
    """

    quantity: ClassVar[str] = "drift of a growing prompt"
    statement: ClassVar[str] = (
        r"$E\|T_{n+m} - T_n\|^2 \le \frac{n m D}{((n-1)(n+m-1))^2 (1-r)^4}"
        r" + 4 (2n+m) \omega^2 e^{-(n-1) r^2 / 2 e^\kappa}$;"
        r" $\rho = \frac{1}{n (n+m) (1-r)^2}"
        r" \sqrt{\frac{n m D}{\delta - 2 e^{-n r^2 / 2 e^\kappa}}}$"
    )
    hypotheses: ClassVar[str] = (
        r"i.i.d. tokens, nested prompts; $0$ and $2u$ interior to the domain of"
        r" $\Lambda$"
    )
    cites: ClassVar[str] = "maurer:03, inequality (1.1)"
    derivation: ClassVar[str] = "equations (9.12) and (9.13)"
    status: ClassVar[Status] = Status.BOUND

    kappa: float
    tau_squared: float
    omega_squared: float
    shift_squared: float
    added: float

    def __post_init__(self) -> None:
        """Check that the moments can be those of a measure."""
        check_nonnegative(**dataclasses.asdict(self))
        if not self.shift_squared <= self.tau_squared * (1 + 1e-9):
            raise ValueError(
                "shift_squared must be at most tau_squared; got "
                f"{self.shift_squared} and {self.tau_squared}"
            )

    @override
    def exists_beyond(self, delta: float | None = None) -> float:
        if math.inf in (self.tau_squared, self.omega_squared):
            return math.inf
        tail = WeightTail(self.kappa)
        if delta is None:
            return 1 + tail.length(nats=1)
        return tail.length(nats=math.log(2 / delta))

    @override
    def _mse(self, n: float) -> float:
        if self.added == 0:
            return 0.0
        tail = WeightTail(self.kappa)
        longer = n + self.added
        bulk = self._spread(n) / ((n - 1) * (longer - 1)) ** 2
        most = 4 * (n + longer) * self.omega_squared
        return minimum(
            lambda r: bulk / (1 - r) ** 4 + most * tail.probability(n - 1, r),
            tail.shortfall(n - 1, nats=1),
            1.0,
        )

    @override
    def _radius(self, n: float, delta: float) -> float:
        tail = WeightTail(self.kappa)
        scale = math.sqrt(self._spread(n)) / (n * (n + self.added))
        return scale * minimum(
            lambda r: (
                1 / ((1 - r) ** 2 * math.sqrt(delta - 2 * tail.probability(n, r)))
            ),
            tail.shortfall(n, nats=math.log(2 / delta)),
            1.0,
        )

    def _spread(self, n: float) -> float:
        r"""Return $n m D$, the second moment of $\|a B - b A\|$ in (9.11)."""
        growth = WeightTail(self.kappa).second_moment
        longer = n + self.added
        variance = growth * self.tau_squared * (longer + 2 * (growth - 1))
        return n * self.added * (variance - 2 * growth**2 * self.shift_squared)


def _shares() -> list[float]:
    """Return the shares of delta that are tried."""
    return [split / SPLITS for split in range(1, SPLITS)]
