r"""What $n$ draws can say of a tilt, and what they cannot.

The exponential mean $\frac1n \sum e^{t x_i}$ is carried by ever fewer draws as $t$
grows. Three zones, for a standard deviation $\sigma$:

* *trusted*, while the doubled tilt keeps an effective sample size of at least 30: the
  variance of the exponential mean can itself be estimated (for Gaussian draws
  $|t|\sigma \lesssim \frac12\sqrt{\log(n/30)}$);
* *visible*, up to $|t|\sigma = \sqrt{2 \log n}$: the estimate means something, its
  error cannot be told from the draws;
* *unseen*, beyond: the estimate is the largest draw and says nothing of the law.

No sample excludes a rare value that it does not hold: without an assumption on the law
no non-trivial upper confidence limit exists (Bahadur and Savage, 1956).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

TRUSTED_ESS = 30.0


def draws(sample: ArrayLike, dims: int) -> Array:
    """Return `sample` as a finite array of `dims` dimensions, two draws or more.

    Raises:
        ValueError: The array has another number of dimensions, fewer than two rows or
            no columns, a number that is not finite, or one value only.
    """
    values = np.asarray(sample, dtype=float)
    if values.ndim != dims or values.shape[0] < 2 or values.size == 0:
        raise ValueError(
            f"a sample needs {dims} dimensions and at least two draws; "
            f"got shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("a sample must be finite; got NaN or infinity")
    if (values == values[0]).all():
        raise ValueError("a sample must hold two different values; got one only")
    return values


def check_level(level: float) -> None:
    """Raise a ValueError unless `level` lies strictly between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1; got {level}")


def reach(n: int) -> float:
    r"""Return $\sqrt{2 \log n}$, the largest $|t|\sigma$ that `n` draws can see."""
    if not n >= 1:
        raise ValueError(f"n must be at least 1; got {n}")
    return math.sqrt(2 * math.log(n))


def relative_weights(sample: Array, tilts: Array) -> tuple[Array, Array]:
    r"""Return $\hat\Lambda(t)$ and the weights $e^{t x_i - \hat\Lambda(t)}$.

    Args:
        sample: Draws, of shape (n,).
        tilts: Tilts, of shape (m,); the weights have shape (m, n) and mean 1.
    """
    logits = tilts[:, None] * sample
    highest = logits.max(axis=1)
    masses = np.exp(logits - highest[:, None])
    mean = masses.mean(axis=1)
    return highest + np.log(mean), masses / mean[:, None]


def tilt_ess(sample: ArrayLike, tilts: ArrayLike) -> Array:
    r"""Return $1/\sum_i w_i^2$ for $w_i \propto e^{t x_i}$, at each tilt.

    Args:
        sample: Draws, of shape (n,).
        tilts: Tilts, of any shape.
    """
    values, at = draws(sample, 1), np.asarray(tilts, dtype=float)
    _, weights = relative_weights(values, at.ravel())
    return (len(values) / np.mean(weights**2, axis=1)).reshape(at.shape)
