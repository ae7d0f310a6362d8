"""Values of a risk together with how far they may be trusted."""

import dataclasses
import math
from typing import final

import scipy.stats
from jaxtyping import Float
from torch import Tensor

from largeprompt.laws import Status


@final
@dataclasses.dataclass(frozen=True)
class RiskEstimate:
    """A mean square error, and an interval around it.

    Attributes:
        value: The estimate.
        radius: Half the width of the interval; 0 when the value is exact.
        confidence: The probability with which the interval holds the risk.
        status: Whether the value is exact or an average over draws.
    """

    value: float
    radius: float
    confidence: float
    status: Status

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval."""
        return self.value - self.radius, self.value + self.radius

    @property
    def relative_error(self) -> float:
        """The radius over the value."""
        return self.radius / self.value if self.value else math.inf


def exact(value: Float[Tensor, ""]) -> RiskEstimate:
    """Return the estimate that is exact."""
    return RiskEstimate(float(value.detach()), 0.0, 1.0, Status.EXACT)


def from_draws(draws: Float[Tensor, " b"], confidence: float) -> RiskEstimate:
    r"""Return the mean of independent `draws` with Student's interval.

    Exact for normal draws, and approximate for many draws of finite variance.

    Raises:
        ValueError: There is one draw only, or the confidence is not inside (0, 1).
    """
    count = draws.numel()
    if count < 2:
        raise ValueError(f"an interval needs at least two draws; got {count}")
    if not 0 < confidence < 1:
        raise ValueError(
            f"confidence must be strictly between 0 and 1; got {confidence}"
        )
    quantile = float(scipy.stats.t.isf((1 - confidence) / 2, count - 1))
    radius = quantile * float(draws.std()) / math.sqrt(count)
    return RiskEstimate(float(draws.mean()), radius, confidence, Status.MONTE_CARLO)
