"""The log-MGF of data along one direction, beside the Gaussian one."""

import dataclasses
import math
from statistics import NormalDist
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from largeprompt.laws.diagnostics.sample import (
    TRUSTED_ESS,
    Array,
    check_level,
    draws,
    reach,
    relative_weights,
)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LogMgfBand:
    r"""$\hat\Lambda(t)$ of centred data with confidence limits, one entry a tilt.

    Limits hold tilt by tilt, not for all at once.

    Attributes:
        tilts: $t$.
        value: $\hat\Lambda(t) = \log \frac1n \sum_i e^{t (x_i - \bar x)}$.
        gaussian: $t^2 \hat\sigma^2 / 2$.
        excess_low: Lower limit of $\Lambda_c(t) - t^2\sigma^2/2$.
        excess_high: Upper limit of the same; $\pm\infty$ where not `trusted`.
        ess: Effective sample size of the tilt.
        trusted: Whether the limits are those of the data, see `sample`.
        visible: Whether $|t|\hat\sigma \le \sqrt{2 \log n}$.
    """

    tilts: Array
    value: Array
    gaussian: Array
    excess_low: Array
    excess_high: Array
    ess: Array
    trusted: NDArray[np.bool_]
    visible: NDArray[np.bool_]

    @property
    def excess(self) -> Array:
        r"""$\hat\Lambda(t) - t^2\hat\sigma^2/2$, zero for Gaussian data."""
        return self.value - self.gaussian

    @property
    def departs(self) -> NDArray[np.bool_]:
        """Whether the limits exclude the Gaussian log-MGF of the same variance."""
        return (self.excess_low > 0) | (self.excess_high < 0)


def log_mgf_limits(
    sample: ArrayLike, tilts: ArrayLike, level: float = 0.95
) -> tuple[Array, Array]:
    r"""Return confidence limits of $\Lambda(t) = \log E e^{t x}$, tilt by tilt.

    Where trusted: Hall's (1992) cubic transformation of the mean of $e^{t x_i}$, which
    corrects its skewness; asymptotic. Elsewhere: the lower limit
    $\hat\Lambda + \log(1 - \mathrm{level})$, which Markov's inequality proves for every
    law and $n$, and $+\infty$ above.

    Args:
        sample: Independent draws, of shape (n,).
        tilts: Tilts, of shape (m,).
        level: The probability that the limits enclose $\Lambda(t)$.
    """
    check_level(level)
    values, at = draws(sample, 1), np.atleast_1d(np.asarray(tilts, dtype=float))
    log_mgf, weights = relative_weights(values, at)
    low, high = hall_limits(weights - 1, level)
    trusted = _doubled_ess(weights) >= TRUSTED_ESS
    with np.errstate(divide="ignore"):
        inside = [np.log(np.maximum(0, 1 + limit)) for limit in (low, high)]
    markov = log_mgf + math.log(1 - level)
    return (
        np.where(trusted, log_mgf + inside[0], markov),
        np.where(trusted, log_mgf + inside[1], math.inf),
    )


def log_mgf_band(
    sample: ArrayLike, tilts: ArrayLike, level: float = 0.95
) -> LogMgfBand:
    r"""Compare the log-MGF of centred data with that of a Gaussian of their variance.

    The excess is estimated with the data's own mean and variance, so its error at a
    draw $x$ is that of $W - 1 - t (x - \bar x) - t^2((x - \bar x)^2 - \hat\sigma^2)/2$:
    of order $t^3$, far less than the error of $\hat\Lambda$ itself
    (docs/theory.md, equation (10.3)).

    Args:
        sample: Independent draws, of shape (n,).
        tilts: Tilts, of shape (m,).
        level: The probability that the limits enclose the excess, at each tilt.
    """
    check_level(level)
    values, at = draws(sample, 1), np.atleast_1d(np.asarray(tilts, dtype=float))
    centred = values - values.mean()
    variance = float(np.mean(centred**2))
    log_mgf, weights = relative_weights(centred, at)
    column = at[:, None]
    influence = weights - 1 - column * centred - column**2 * (centred**2 - variance) / 2
    low, high = hall_limits(influence, level)
    trusted = _doubled_ess(weights) >= TRUSTED_ESS
    gaussian = at**2 * variance / 2
    excess = log_mgf - gaussian
    return LogMgfBand(
        tilts=at,
        value=log_mgf,
        gaussian=gaussian,
        excess_low=np.where(trusted, excess + low, -math.inf),
        excess_high=np.where(trusted, excess + high, math.inf),
        ess=len(values) / np.mean(weights**2, axis=1),
        trusted=trusted,
        visible=np.abs(at) * math.sqrt(variance) <= reach(len(values)),
    )


def hall_limits(influence: Array, level: float) -> tuple[Array, Array]:
    r"""Return limits of the error of a mean, corrected for skewness.

    With $s$ and $\gamma$ the standard deviation and skewness of a row and
    $x(q) = \frac3\gamma\{[1 + \gamma(q/\sqrt n - \gamma/6n)]^{1/3} - 1\}$, the truth
    minus the estimate lies in $[-s\,x(z), -s\,x(-z)]$ (Hall, 1992).

    Args:
        influence: Influence values, of mean zero along the last axis.
        level: The probability of the interval.
    """
    n = influence.shape[-1]
    z = NormalDist().inv_cdf((1 + level) / 2)
    scale = np.sqrt(np.mean(influence**2, axis=-1))
    safe = np.where(scale > 0, scale, 1.0)
    skew = np.mean((influence / safe[..., None]) ** 3, axis=-1)
    skew = np.where(np.abs(skew) > 1e-6, skew, 1e-6)  # x(q) is q / sqrt(n) there

    def inverse(q: float) -> Array:
        argument = skew * (q / math.sqrt(n) - skew / (6 * n))
        return 3 / skew * (np.cbrt(1 + argument) - 1)

    return -scale * inverse(z), -scale * inverse(-z)


def _doubled_ess(weights: Array) -> Array:
    """Return the effective sample size of twice each tilt."""
    squares = weights**2
    return weights.shape[-1] * squares.mean(-1) ** 2 / np.mean(squares**2, axis=-1)
