r"""Tokens that are not independent: a stationary Gaussian sequence.

With $\mathrm{Cov}(x_0, x_k) = \rho_k G$ the masses $e^{u \cdot x_i}$ are correlated by
$e^{s^2\rho_k} - 1$, and $n$ tokens count as fewer. How many fewer depends on what is
asked: the normaliser, the output across the tilt (and the bias), or along it
(docs/theory.md, section 8).
"""

import dataclasses
import math
from typing import ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from largeprompt.laws.exact import LARGEST_LOGIT_VARIANCE, check_range
from largeprompt.laws.status import Status

Array = NDArray[np.float64]

NEGLIGIBLE = 1e-17  # an autocorrelation
LONGEST = 10_000_000  # lags
ROUNDING = 1e-9  # of a spectral density


@final
@dataclasses.dataclass(frozen=True)
class LongRun:
    r"""Long-run sums over the lags, and the equivalent numbers of independent tokens.

    $$ n\, E\|T_n - T\|^2 \to \alpha\, \mathrm{tr}(V G V^\top)
       + \epsilon \|V G u\|^2, \qquad n\, (E[T_n] - T) \to -\alpha\, V G u . $$

    Attributes:
        logit_variance: $s^2$.
        across: $\alpha = \sum_{k \in \mathbb{Z}} \rho_k e^{s^2\rho_k}$.
        parallel_excess: $\epsilon = \sum_k \rho_k^2 e^{s^2\rho_k}$.
        normaliser: $\sum_k (e^{s^2\rho_k} - 1)/s^2$, and $\sum_k \rho_k$ at $s = 0$.
    """

    status: ClassVar[Status] = Status.ASYMPTOTIC
    logit_variance: float
    across: float
    parallel_excess: float
    normaliser: float

    @property
    def normaliser_share(self) -> float:
        r"""Independent tokens per token, for the normaliser's variance."""
        v = self.logit_variance
        return (math.expm1(v) / v if v > 0 else 1.0) / self.normaliser

    @property
    def across_share(self) -> float:
        r"""Independent tokens per token, for the bias and the error across the tilt."""
        return math.exp(self.logit_variance) / self.across

    @property
    def along_share(self) -> float:
        r"""Independent tokens per token, for the output along the tilt."""
        v = self.logit_variance
        return math.exp(v) * (1 + v) / (self.across + v * self.parallel_excess)

    def mean_square_error(self, n: float, response: float, variance: float) -> float:
        r"""Return $E\|T_n - T\|^2$ to leading order in $1/n$.

        Args:
            n: The prompt length, in tokens.
            response: $\|V G u\|^2$.
            variance: $\mathrm{tr}(V G V^\top)$.
        """
        return (self.across * variance + self.parallel_excess * response) / n


def long_run(logit_variance: float, autocorrelation: ArrayLike) -> LongRun:
    r"""Return the long-run sums of a stationary Gaussian sequence.

    Args:
        logit_variance: $s^2 = u^\top G u$ from 0 to 400.
        autocorrelation: $\rho_1, \rho_2, \dots$, zero beyond the last; may be empty.

    Raises:
        ValueError: A correlation of modulus 1 or more (the sequence then repeats itself
            and has no limit), a negative spectral density, which no autocorrelation
            has, or a logit variance outside its range.

    Source: derived in docs/theory.md, section 8.
    """
    check_range(
        "logit_variance", np.array(float(logit_variance)), 0.0, LARGEST_LOGIT_VARIANCE
    )
    rho = np.asarray(autocorrelation, dtype=float)
    if rho.ndim != 1:
        raise ValueError(f"autocorrelation must be a vector; got shape {rho.shape}")
    if not (np.abs(rho) < 1).all():
        raise ValueError(
            "autocorrelations must be strictly between -1 and 1; "
            f"got {rho[~(np.abs(rho) < 1)][0]}"
        )
    lags = np.concatenate([[1.0], rho])
    spectral = 2 * np.fft.rfft(lags, 4 * len(lags)).real - 1
    if spectral.min() < -ROUNDING * np.abs(lags).sum():
        raise ValueError(
            "an autocorrelation has a spectral density of at least 0; "
            f"got {spectral.min():g}"
        )
    both_sides = np.where(np.arange(len(lags)) == 0, 1.0, 2.0)
    growth = both_sides * np.exp(logit_variance * lags)
    mass = np.expm1(logit_variance * lags) / logit_variance if logit_variance else lags
    return LongRun(
        logit_variance=logit_variance,
        across=float(growth @ lags),
        parallel_excess=float(growth @ lags**2),
        normaliser=float(both_sides @ mass),
    )


def geometric_autocorrelation(correlation: float) -> Array:
    r"""Return $\rho, \rho^2, \dots$, that of a first-order autoregression.

    Args:
        correlation: $\rho$, strictly between $-1$ and 1 (at most $1 - 4\cdot 10^{-6}$).

    Raises:
        ValueError: The modulus of `correlation` is 1 or more, or so near that more than
            ten million lags matter.
    """
    if not abs(correlation) < 1:
        raise ValueError(
            f"a correlation must be strictly between -1 and 1; got {correlation}"
        )
    if correlation == 0:
        return np.zeros(0)
    lags = math.ceil(math.log(NEGLIGIBLE) / math.log(abs(correlation)))
    if lags > LONGEST:
        raise ValueError(
            f"a correlation must fade within {LONGEST:g} tokens; got {correlation}"
        )
    return correlation ** np.arange(1.0, lags + 1)
