r"""Moments of softmax weights over independent tokens of any law, by quadrature.

The output sees a token through its logit, and through the value's moments given
whatever decides the logit. Give every token a *label*, random and independent, that
fixes its logit $\ell$: the coordinate along the tilt for a Gaussian, that and the
component for a mixture, the atom itself for a finite set. With $y = e^{\tau + \ell}$
and $L = E e^{-y}$,

$$ E[w_1^2; a] = \int E[y^2 e^{-y}; a] L^{n-1} d\tau, \qquad
   E[w_1 w_2; a, b] = \int E[y e^{-y}; a] E[y e^{-y}; b] L^{n-2} d\tau, $$

so one quadrature over labels and one over $\tau$ give every second moment
(docs/theory.md, section 4).
"""

import dataclasses
import math
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from largeprompt.laws.exact import LARGEST_N, check_range
from largeprompt.laws.laplace import DEPTH, STEP
from largeprompt.laws.status import Status

Array = NDArray[np.float64]

BLOCK = 2**20  # labels times nodes of tau held at once
ENOUGH = 200.0  # expected tokens above a logit that make its negligible survival


@final
@dataclasses.dataclass(frozen=True, eq=False)
class WeightMoments:
    r"""Moments of the weights $w_i$ of `n` labelled tokens.

    Attributes:
        first: $n E[w_1; a]$, the expected weight of each label $a$; sums to one.
        second: $n E[w_1^2; a]$, the expected squared weight of each label.
        pairs: $n(n-1) E[w_1 w_2 f_1 f_2^\top]$ for the features $f$ of two tokens.
    """

    status: ClassVar[Status] = Status.EXACT
    first: Array
    second: Array
    pairs: Array

    @property
    def inverse_ess(self) -> float:
        r"""$\phi = E \sum_i w_i^2$, the expected inverse effective sample size."""
        return float(self.second.sum())


def weight_moments(
    n: float, probability: Array, logit: Array, features: Array
) -> WeightMoments:
    r"""Return the moments of the weights of `n` independent labelled tokens.

    Args:
        n: Prompt length from 1 to $10^{15}$.
        probability: The probability of each label, normalised here.
        logit: The logit $\ell$ of each label.
        features: $f$, one row a label. Centre them, $E[e^\ell f] = 0$: then `pairs` is
            small where it should be, not the difference of large numbers.

    Raises:
        ValueError: `n` is outside its range, or the shapes disagree.

    Source: derived in docs/theory.md, section 4.
    """
    check_range("n", np.array(float(n)), 1.0, LARGEST_N)
    labels = logit.shape
    if not (logit.ndim == 1 and probability.shape == labels == features.shape[:1]):
        raise ValueError(
            "probability, logit and the rows of features must be one a label; got "
            f"shapes {probability.shape}, {labels} and {features.shape}"
        )
    probability = probability / probability.sum()
    tau = tau_grid(n, probability, logit)
    first, second = np.zeros(labels), np.zeros(labels)
    pairs = np.zeros((features.shape[1],) * 2)
    rows = max(1, BLOCK // len(logit))
    for start in range(0, len(tau), rows):
        exponent = tau[start : start + rows, None] + logit
        y = np.exp(np.minimum(exponent, 7.0))  # e^{-y} is zero there already
        survival = np.exp(-y)
        complement = -np.expm1(-y) @ probability
        log_transform = np.where(
            complement < 0.5,
            np.log1p(-np.minimum(complement, 0.5)),
            np.log(np.maximum(survival @ probability, 1e-300)),
        )
        others = n * STEP * np.exp((n - 1) * log_transform)
        couples = n * (n - 1) * STEP * np.exp((n - 2) * log_transform)
        mass = y * survival * probability
        first += others @ mass
        second += others @ (y * mass)
        drawn = mass @ features
        pairs += (drawn.T * couples) @ drawn
    return WeightMoments(first, second, pairs)


def tau_grid(n: float, probability: Array, logit: Array) -> Array:
    r"""Return the grid of $\tau$, of step `STEP`, that holds every integrand.

    On the left $n E[y e^{-y}] \le n e^\tau E e^\ell$ is 38 nats below its peak; on the
    right either 200 tokens are expected to have $y > 1$, or every $y$ is above 90.
    """
    highest = logit.max()
    log_mean = highest + math.log(probability @ np.exp(logit - highest))
    low = -(math.log(n) + DEPTH + log_mean)
    order = np.argsort(-logit)
    above = n * np.cumsum(probability[order])
    reached = above >= ENOUGH
    lowest = logit[order][reached.argmax()] if reached.any() else logit.min() - 4.5
    return low + STEP * np.arange(math.ceil((-lowest - low) / STEP) + 1)
