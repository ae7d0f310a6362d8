r"""The unnormalised weights $W_i = e^{u \cdot x_i - \Lambda(u)}$ and their lower tail.

They have mean 1 and second moment $e^\kappa$, so a sum of $m$ of them falls short of
$m (1 - r)$ with probability at most $e^{-m r^2 / 2 e^\kappa}$ (Maurer (2003)): however
heavy the upper tail of a softmax normaliser, its lower tail is Gaussian.
"""

import dataclasses
import math
from typing import final

LARGEST_EXPONENT = 700.0


@final
@dataclasses.dataclass(frozen=True)
class WeightTail:
    r"""The lower tail of sums of $W_i$, in terms of $\kappa$ alone.

    A probability $e^{-c}$ is said in nats, $c$.

    Attributes:
        kappa: $\kappa = \log E W^2 = \Lambda(2u) - 2\Lambda(u)$.
    """

    kappa: float

    @property
    def second_moment(self) -> float:
        r"""$E W^2 = e^\kappa$, infinite where a float cannot hold it."""
        return math.exp(self.kappa) if self.kappa < LARGEST_EXPONENT else math.inf

    def probability(self, count: float, shortfall: float) -> float:
        r"""Return the bound on $P(\sum_{i \le m} W_i \le m (1 - r))$.

        Args:
            count: $m$, how many weights are summed.
            shortfall: $r$ in (0, 1).
        """
        return math.exp(-count * shortfall**2 / (2 * self.second_moment))

    def shortfall(self, count: float, nats: float) -> float:
        """Return the shortfall at which `probability` is exp(-`nats`)."""
        return math.sqrt(2 * self.second_moment * nats / count)

    def length(self, nats: float) -> float:
        """Return the count beyond which that shortfall is below 1."""
        return 2 * self.second_moment * nats
