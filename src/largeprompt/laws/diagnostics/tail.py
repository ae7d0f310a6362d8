r"""The tail exponent of data: $-\log P(|x| > r) \sim r^\alpha$."""

import dataclasses
import math
from statistics import NormalDist
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from largeprompt.laws.diagnostics.sample import Array, check_level, draws

LARGEST_EXPONENT = 1e3
TURNS = 60


@final
@dataclasses.dataclass(frozen=True)
class TailFit:
    r"""The tail of $|x - \mathrm{median}|$ beyond its $(k+1)$-th largest value.

    Attributes:
        exponent: $\hat\alpha$: 2 for Gaussian tails, 1 for exponential ones, below 1
            for sub-exponential; infinite for a tail that ends at the threshold.
        low: Lower confidence limit of the exponent.
        high: Upper confidence limit of the exponent.
        gaussian_exponent: What the same fit gives on the quantiles of a Gaussian: at a
            finite depth less than 2, and the number to compare with.
        hill_index: Hill's $\hat\xi$, the mean log excess. For a power law
            $P(|x| > r) \sim r^{-1/\xi}$ it tends to $\xi$ as the threshold rises, and
            $\hat\alpha$ to 0; for lighter tails it tends to 0.
        threshold: The $(k+1)$-th largest $|x - \mathrm{median}|$.
        kept: $k$, how many values the fit used.
    """

    exponent: float
    low: float
    high: float
    gaussian_exponent: float
    hill_index: float
    threshold: float
    kept: int


def tail_exponent(
    sample: ArrayLike, kept: int | None = None, level: float = 0.95
) -> TailFit:
    r"""Fit $P(|x| > r) = p^{(r/r_0)^\alpha}$ beyond $r_0$ by maximum likelihood.

    $r_0$ is the $(k+1)$-th largest $|x - \mathrm{median}|$ and $p = k/n$. Given
    $y = |x|/r_0 > 1$, $y^\alpha - 1$ is exponential of rate $\log(1/p)$, so the score
    in $\alpha$ is decreasing and has one root; the limits are those of the observed
    information (docs/theory.md, equation (10.7)). They hold for the model, not for its
    bias: compare with `gaussian_exponent`.

    Args:
        sample: Independent draws, of shape (n,) with $n \ge 20$.
        kept: $k$, from 5 to n / 4; the square root of $4n$ when left out.
        level: The probability that the limits enclose the exponent.

    Raises:
        ValueError: Too few draws, `kept` or `level` outside its range, or more than
            `n - kept` draws that equal the median.
    """
    check_level(level)
    values = draws(sample, 1)
    n = len(values)
    if n < 20:
        raise ValueError(f"a tail fit needs at least 20 draws; got {n}")
    if kept is None:
        kept = min(math.isqrt(4 * n), n // 4)
    if not 5 <= kept <= n // 4:
        raise ValueError(f"kept must be from 5 to {n // 4}; got {kept}")
    sizes = np.sort(np.abs(values - np.median(values)))
    threshold = float(sizes[n - kept - 1])
    if threshold == 0:
        raise ValueError(
            f"at least {kept + 1} draws must differ from the median; got fewer"
        )
    rate = math.log(n / kept)
    logs = np.log(sizes[n - kept :] / threshold)
    exponent, error = _likeliest(logs, rate)
    margin = NormalDist().inv_cdf((1 + level) / 2) * error
    return TailFit(
        exponent=exponent,
        low=max(0.0, exponent - margin) if exponent < math.inf else math.inf,
        high=exponent + margin if exponent < math.inf else math.inf,
        gaussian_exponent=_likeliest(_gaussian_logs(n, kept), rate)[0],
        hill_index=float(logs.mean()),
        threshold=threshold,
        kept=kept,
    )


def _likeliest(logs: Array, rate: float) -> tuple[float, float]:
    r"""Return the root of the score and its standard error.

    The log-likelihood is $k\log\alpha + \alpha\sum\log y - c\sum(y^\alpha - 1)$.
    """
    k = len(logs)

    def score(alpha: float) -> float:
        return k / alpha + float(logs.sum() - rate * (logs @ np.exp(alpha * logs)))

    low, high = 1e-9, 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        while high < LARGEST_EXPONENT and score(high) > 0:
            low, high = high, 2 * high
        if score(high) > 0:
            return math.inf, math.inf
        for _ in range(TURNS):
            middle = (low + high) / 2
            low, high = (middle, high) if score(middle) > 0 else (low, middle)
    information = k / low**2 + rate * float((logs**2) @ np.exp(low * logs))
    return low, 1 / math.sqrt(information)


def _gaussian_logs(n: int, kept: int) -> Array:
    """Return the log excesses of the largest `kept` of `n` ideal Gaussian draws."""
    normal = NormalDist()
    tails = [kept / n, *((rank + 0.5) / n for rank in range(kept))]
    threshold, *largest = (-normal.inv_cdf(tail / 2) for tail in tails)
    return np.log(np.array(largest) / threshold)
