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
Sizes = NDArray[np.int64]

PROXY_TILTS = 16  # on either side of zero, up to the reach of the tokens
LEVELS = 33  # quantiles of a QQ plot
EXTREME = 1e-4  # the first of them
FEWEST = 20  # tokens that a tail is fitted to
STEPS = 40  # at most; a handful where the root is inside the bracket
PRECISION = 1e-10
LARGEST_EXPONENT = 100.0

THRESHOLDS: Array = np.arange(0.5, 8.01, 0.5)
MULTIPLES: Array = np.arange(1, 17) / 8
NORMAL_QUANTILES: Array = np.linspace(-1, 1, LEVELS) * -NormalDist().inv_cdf(EXTREME)


def log_means(
    logits: Array, step: Array, count: int, sizes: Sizes | None = None
) -> Array:
    r"""Return $\log \frac1n \sum_i e^{j t x_i}$ for $j = 1, \dots,$ `count`.

    One exponential a token: its powers are products.

    Args:
        logits: $x$, of shape (h, n).
        step: $t$ of each row.
        count: How many multiples of it.
        sizes: How many tokens each row holds, from its start; all when None.
    """
    signed = step[:, None] * logits
    if sizes is not None:
        signed[np.arange(logits.shape[-1]) >= sizes[:, None]] = -np.inf
    top = signed.max(-1)
    base = np.exp(signed - top[:, None])
    power = base.copy()
    sums = [power.sum(-1)]
    for _ in range(1, count):
        power *= base
        sums.append(power.sum(-1))
    held = np.full(len(logits), logits.shape[-1]) if sizes is None else sizes
    multiples = np.arange(1, count + 1)
    return np.log(np.stack(sums, -1) / held[:, None]) + multiples * top[:, None]


def proxy_ratio(standard: Array, sizes: Sizes | None = None) -> Array:
    r"""Return the proxy variance over the variance, at least 1, of each row.

    $\max_t 2 \hat\Lambda(t)/t^2$ over $|t| \le \sqrt{2 \log n}$; 1 for Gaussian logits
    and any others that are strictly sub-Gaussian. NaN where logits do not vary.

    Args:
        standard: Standardised logits, of shape (h, n).
        sizes: How many tokens each row holds, from its start; all when None.
    """
    held = np.full(len(standard), standard.shape[-1]) if sizes is None else sizes
    # a single token does not vary, and has no reach
    step = np.sqrt(2 * np.log(np.maximum(held, 2))) / PROXY_TILTS
    tilts = step[:, None] * np.arange(1, PROXY_TILTS + 1)
    growth = np.maximum(
        log_means(standard, step, PROXY_TILTS, sizes),
        log_means(standard, -step, PROXY_TILTS, sizes),
    )
    ratio = np.maximum(1, (2 * growth / tilts**2).max(-1))
    return np.where(standard.any(-1), ratio, np.nan)


def tail_exponents(standard: Array, sizes: Sizes | None = None) -> Array:
    r"""Return $\alpha$ of $-\log P(|x| > r) \sim r^\alpha$ for each row.

    The fit of `laws.diagnostics.tail_exponent` to the $2\sqrt n$ largest distances from
    the median. NaN for fewer than 20 tokens, or logits that do not vary; at most 100.

    Args:
        standard: Standardised logits, of shape (h, n).
        sizes: How many tokens each row holds, from its start; all when None.
    """
    held = np.full(len(standard), standard.shape[-1]) if sizes is None else sizes
    kept = np.array([_fitted(size) for size in held.tolist()])
    logs = np.zeros((len(standard), max(1, int(kept.max()))))
    varies = np.zeros(len(standard), bool)
    for size in set(held[held >= FEWEST].tolist()):
        mine, count = np.flatnonzero(held == size), _fitted(size)
        rows = standard[mine, :size]
        distances = np.abs(rows - np.median(rows, -1, keepdims=True))
        largest = np.partition(distances, size - count - 1, -1)[:, size - count - 1 :]
        threshold = largest[:, :1]
        varies[mine] = threshold[:, 0] > 0
        ratio = largest[:, 1:] / np.where(threshold > 0, threshold, 1)
        logs[mine, :count] = np.log(np.where(threshold > 0, ratio, 2))
    found = np.full(len(standard), np.nan)
    if varies.any():
        rates = np.log(held / np.maximum(kept, 1))
        found[varies] = _likeliest(logs[varies], rates[varies], kept[varies])
    return found


def _fitted(count: int) -> int:
    """Return how many of `count` tokens a tail is fitted to."""
    return min(math.isqrt(4 * count), count // 4)


@functools.cache
def gaussian_tail_exponent(count: int) -> float:
    """Return what the fit gives on as many ideal Gaussian draws; NaN below 20.

    At a finite depth it is less than 2, the exponent of the law.
    """
    if count < FEWEST:
        return math.nan
    kept = _fitted(count)
    normal = NormalDist()
    tails = [kept / count, *((rank + 0.5) / count for rank in range(kept))]
    sizes = np.array([-normal.inv_cdf(tail / 2) for tail in tails])
    logs = np.log(sizes[1:] / sizes[0])[None]
    rates, counts = np.array([math.log(count / kept)]), np.array([kept])
    return float(_likeliest(logs, rates, counts)[0])


def _likeliest(logs: Array, rates: Array, counts: Sizes) -> Array:
    """Return the root of the score in the exponent, by Newton steps inside a bracket.

    Args:
        logs: Log of distance over threshold, one row a fit, followed by zeros.
        rates: Log of tokens over tokens fitted, of each row.
        counts: How many logs each row holds.
    """
    low = np.full(len(logs), 1 / LARGEST_EXPONENT)
    high, alpha = 1 / low, np.full(len(logs), 2.0)
    first = logs.sum(-1)
    for _ in range(STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            raised = logs * np.exp(alpha[:, None] * logs)
            score = 1 / alpha + (first - rates * raised.sum(-1)) / counts
            curvature = np.einsum("rt,rt->r", logs, raised)
            slope = 1 / alpha**2 + rates * curvature / counts
            step = alpha + score / slope
        low, high = np.where(score > 0, alpha, low), np.where(score > 0, high, alpha)
        inside = (step >= low) & (step <= high)  # the root itself is an end
        before, alpha = alpha, np.where(inside, step, np.sqrt(low * high))
        if (np.abs(alpha - before) <= PRECISION * alpha).all():
            break
    return alpha


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
