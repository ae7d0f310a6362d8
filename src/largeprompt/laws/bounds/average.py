"""A bound averaged over the law of the query, where single queries may be hopeless."""

import dataclasses
import math
from typing import ClassVar, final

from typing_extensions import override

from largeprompt.laws.bounds.base import Bound, check_nonnegative
from largeprompt.laws.bounds.output import OutputBound
from largeprompt.laws.status import Status


@final
@dataclasses.dataclass(frozen=True)
class LargestTokenCeiling:
    r"""$E \max_i \|V(x_i - t)\|^2 \le \min_p (n\, E\|V(x - t)\|^{2p})^{1/p}$.

    True at every prompt length, with no tail of the weights in it: an output is a
    weighted mean of its tokens' values.

    Attributes:
        moments: $E\|V(x - t)\|^{2p}$ for $p = 1, 2, \dots$
    """

    moments: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the moments."""
        if not self.moments:
            raise ValueError("a ceiling needs at least one moment; got none")
        check_nonnegative(
            **{f"moment {p}": moment for p, moment in enumerate(self.moments, 1)}
        )

    def __call__(self, n: float) -> float:
        """Return the ceiling at a prompt of `n` tokens."""
        return min((n * m) ** (1 / p) for p, m in enumerate(self.moments, 1))


@final
@dataclasses.dataclass(frozen=True)
class QueryAveragedBound(Bound):
    r"""The mean square averaged over a query law with finitely many atoms $z_j$.

    $$ E\|T_n(z) - T(z)\|^2 \le \sum_j p_j \min(B_j(n), C_j(n)) $$

    with $B_j$ the `OutputBound` of the query $z_j$ and $C_j$ its
    `LargestTokenCeiling`. The ceiling holds while $B_j$ does not exist yet, which for
    unbounded queries is the case of some $z_j$ at every length. The radius is Markov's.
    Exact for the query law given; for another law the atoms are a quadrature or draws.

    Attributes:
        probabilities: $p_j$, of sum 1.
        bounds: $B_j$.
        ceilings: $C_j$.
    """

    quantity: ClassVar[str] = "output, averaged over queries"
    statement: ClassVar[str] = (
        r"$E\|T_n(z) - T(z)\|^2 \le \sum_j p_j \min(B_j(n), C_j(n))$;"
        r" $\rho = \sqrt{E\|T_n(z) - T(z)\|^2 / \delta}$"
    )
    hypotheses: ClassVar[str] = (
        "i.i.d. tokens; a query independent of them with finitely many values"
    )
    cites: ClassVar[str] = "maurer:03, inequality (1.1)"
    derivation: ClassVar[str] = "equations (9.6) and (9.7)"
    status: ClassVar[Status] = Status.BOUND

    probabilities: tuple[float, ...]
    bounds: tuple[OutputBound, ...]
    ceilings: tuple[LargestTokenCeiling, ...]

    def __post_init__(self) -> None:
        """Check that the three tuples describe one query law."""
        sizes = [len(self.probabilities), len(self.bounds), len(self.ceilings)]
        if len(set(sizes)) != 1:
            raise ValueError(
                f"probabilities, bounds and ceilings must have one length; got {sizes}"
            )
        total = math.fsum(self.probabilities)
        if min(self.probabilities, default=0) < 0 or abs(total - 1) > 1e-9:
            raise ValueError(
                f"probabilities must be at least 0 and sum to 1; got a sum of {total}"
            )

    @override
    def exists_beyond(self, delta: float | None = None) -> float:
        return 0.0

    @override
    def _mse(self, n: float) -> float:
        terms = zip(self.probabilities, self.bounds, self.ceilings, strict=True)
        return math.fsum(
            probability * min(bound.mse(n), ceiling(n))
            for probability, bound, ceiling in terms
            if probability > 0
        )

    @override
    def _radius(self, n: float, delta: float) -> float:
        return math.sqrt(self._mse(n) / delta)
