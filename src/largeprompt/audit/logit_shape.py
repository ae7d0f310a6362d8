r"""How Gaussian the logits of a query are: growth under tilts, tails, quantiles.

Rows are heads; everything is of standardised logits $z = (\ell - \bar\ell)/s$.
`laws.diagnostics` says what the numbers mean and gives them limits, one sample at a
time; here they are computed for all rows at once.
"""

import functools
import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PROXY_TILTS = 16  # on either side of zero, up to the reach of the tokens
LEVELS = 33  # quantiles of a QQ plot
EXTREME = 1e-4  # the first of them
FEWEST = 20  # tokens that a tail is fitted to
BISECTIONS = 32
LARGEST_EXPONENT = 100.0

THRESHOLDS: Array = np.arange(0.5, 8.01, 0.5)
MULTIPLES: Array = np.arange(1, 17) / 8
NORMAL_QUANTILES: Array = np.linspace(-1, 1, LEVELS) * -NormalDist().inv_cdf(EXTREME)


def log_means(logits: Array, step: Array, count: int) -> Array:
    r"""Return $\log \frac1n \sum_i e^{j t x_i}$ for $j = 1, \dots,$ `count`.

    One exponential a token: its powers are products.

    Args:
        logits: $x$, of shape (h, n).
        step: $t$ of each row.
        count: How many multiples of it.
    """
    signed = step[:, None] * logits
    top = signed.max(-1)
    base = np.exp(signed - top[:, None])
    power, found = np.ones_like(base), []
    for j in range(1, count + 1):
        power *= base
        found.append(np.log(power.mean(-1)) + j * top)
    return np.stack(found, -1)


def proxy_ratio(standard: Array) -> Array:
    r"""Return the proxy variance over the variance, at least 1, of each row.

    $\max_t 2 \hat\Lambda(t)/t^2$ over $|t| \le \sqrt{2 \log n}$; 1 for Gaussian logits
    and any others that are strictly sub-Gaussian. NaN where logits do not vary.
    """
    count = standard.shape[-1]
    step = math.sqrt(2 * math.log(count)) / PROXY_TILTS
    tilts = step * np.arange(1, PROXY_TILTS + 1)
    steps = np.full(len(standard), step)
    growth = np.maximum(
        log_means(standard, steps, PROXY_TILTS),
        log_means(standard, -steps, PROXY_TILTS),
    )
    ratio = np.maximum(1, (2 * growth / tilts**2).max(-1))
    return np.where(standard.any(-1), ratio, np.nan)


def tail_exponents(standard: Array) -> Array:
    r"""Return $\alpha$ of $-\log P(|x| > r) \sim r^\alpha$ for each row.

    The fit of `laws.diagnostics.tail_exponent` to the $2\sqrt n$ largest distances from
    the median. NaN for fewer than 20 tokens, or logits that do not vary; at most 100.
    """
    count = standard.shape[-1]
    if count < FEWEST:
        return np.full(len(standard), np.nan)
    kept = min(math.isqrt(4 * count), count // 4)
    sizes = np.abs(standard - np.median(standard, -1, keepdims=True))
    largest = np.partition(sizes, count - kept - 1, -1)[:, count - kept - 1 :]
    threshold = largest[:, :1]
    varies = threshold[:, 0] > 0
    ratio = largest[:, 1:] / np.where(threshold > 0, threshold, 1)
    logs = np.log(np.where(varies[:, None], ratio, 2))
    found = _likeliest(logs, math.log(count / kept))
    return np.where(varies, found, np.nan)


@functools.cache
def gaussian_tail_exponent(count: int) -> float:
    """Return what the fit gives on as many ideal Gaussian draws; NaN below 20.

    At a finite depth it is less than 2, the exponent of the law.
    """
    if count < FEWEST:
        return math.nan
    kept = min(math.isqrt(4 * count), count // 4)
    normal = NormalDist()
    tails = [kept / count, *((rank + 0.5) / count for rank in range(kept))]
    sizes = np.array([-normal.inv_cdf(tail / 2) for tail in tails])
    logs = np.log(sizes[1:] / sizes[0])[None]
    return float(_likeliest(logs, math.log(count / kept))[0])


def _likeliest(logs: Array, rate: float) -> Array:
    """Return the root of the score in the exponent, by bisection of its logarithm."""
    low = np.full(len(logs), -math.log(LARGEST_EXPONENT))
    high = -low
    with np.errstate(over="ignore"):
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            alpha = np.exp(middle)[:, None]
            score = 1 / alpha[:, 0] + (logs * (1 - rate * np.exp(alpha * logs))).mean(
                -1
            )
            low = np.where(score > 0, middle, low)
            high = np.where(score > 0, high, middle)
    return np.exp((low + high) / 2)


def quantiles(ordered: Array) -> Array:
    """Return the quantiles of sorted rows at the levels of `NORMAL_QUANTILES`."""
    levels = np.array([NormalDist().cdf(x) for x in NORMAL_QUANTILES])
    place = levels * ordered.shape[-1] - 0.5
    below = np.clip(np.floor(place).astype(int), 0, ordered.shape[-1] - 2)
    share = np.clip(place - below, 0, 1)
    return (1 - share) * ordered[:, below] + share * ordered[:, below + 1]


def shares_above(ordered: Array) -> Array:
    """Return the share of each sorted row above each of `THRESHOLDS`."""
    counts = [np.searchsorted(row, THRESHOLDS, side="right") for row in ordered]
    return 1 - np.stack(counts) / ordered.shape[-1]
