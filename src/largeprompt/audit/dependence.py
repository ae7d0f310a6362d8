r"""How alike neighbouring tokens are to a query, and how many count as independent."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len

Array = NDArray[np.float64]


def autocorrelation(centred: Array, lags: int) -> Array:
    r"""Return $\hat\rho_0 = 1, \hat\rho_1, \dots$ of rows, up to `lags`.

    The sums over pairs are divided by those of squares, not by the number of pairs: so
    the sequence has a spectral density of at least 0. Zeros beyond 0 for rows that do
    not vary.

    Args:
        centred: Rows of mean zero, of shape (h, n).
        lags: The last lag, below n.
    """
    n = centred.shape[-1]
    length = next_fast_len(n + lags, real=True)
    assert length is not None, "there is a fast length for every one"
    transform = np.fft.rfft(centred, length)
    power = transform.real**2 + transform.imag**2
    sums = np.fft.irfft(power, length)[:, : lags + 1]
    varies = sums[:, :1] > 0
    nothing = np.zeros(lags + 1)
    nothing[0] = 1
    return np.where(varies, sums / np.where(varies, sums[:, :1], 1), nothing)


def independent_share(correlation: Array, logit_variance: Array) -> Array:
    r"""Return how many independent tokens each token counts for, one a row.

    For stationary Gaussian logits the error across the tilt of $n$ tokens is that of
    $n e^{s^2} / \sum_k \rho_k e^{s^2 \rho_k}$ independent ones, to leading order
    (docs/theory.md, section 8). The correlations are tapered linearly to zero at the
    last lag, which keeps the sum at least 0; the share is at most 1.

    Args:
        correlation: $\hat\rho_0, \hat\rho_1, \dots$, of shape (h, lags + 1).
        logit_variance: $s^2$ of each row.
    """
    lags = correlation.shape[-1] - 1
    taper = 1 - np.arange(lags + 1) / (lags + 1)
    rho = correlation * taper
    sides = np.where(np.arange(lags + 1) == 0, 1.0, 2.0)
    terms = sides * rho * np.exp(logit_variance[:, None] * (rho - 1))
    return 1 / np.maximum(terms.sum(-1), 1.0)


def bandwidth(n: int) -> int:
    """Return how many lags of `n` tokens say something: their root."""
    return math.isqrt(n)
