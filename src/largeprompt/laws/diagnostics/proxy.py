"""How sub-Gaussian data are: the proxy variance, along directions and at worst."""

import dataclasses
import math
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from largeprompt.laws.bounds.search import minimum
from largeprompt.laws.diagnostics.sample import Array, draws, reach, relative_weights

TILTS = 64  # tried on either side, up to the reach of the sample
STARTS = 8  # principal axes that the search for the worst direction starts from
SIZES = 6  # sizes of the tilt that it tries
TURNS = 50


@final
@dataclasses.dataclass(frozen=True)
class ProxyVariance:
    r"""The smallest $\sigma_p^2$ with $\Lambda_c(t) \le \sigma_p^2 t^2 / 2$ in reach.

    A point estimate: as no sample bounds what it does not hold, so no upper limit.

    Attributes:
        value: $\max_t 2\hat\Lambda_c(t)/t^2$ over $|t|\hat\sigma \le \sqrt{2\log n}$.
        tilt: Where the maximum is attained.
        variance: $\hat\sigma^2$, which no proxy variance is below; the limit $t \to 0$.
        largest_tilt: The end of the range.
    """

    value: float
    tilt: float
    variance: float
    largest_tilt: float

    @property
    def ratio(self) -> float:
        r"""$\sigma_p^2/\hat\sigma^2$: 1 for strictly sub-Gaussian laws."""
        return self.value / self.variance

    @property
    def at_edge(self) -> bool:
        """Whether the maximum sits where the sample ends: the truth may be larger."""
        return abs(self.tilt) >= (1 - 1 / TILTS) * self.largest_tilt


@final
@dataclasses.dataclass(frozen=True, eq=False)
class WorstDirection:
    """The direction of largest proxy variance that a search found.

    Attributes:
        direction: A unit vector.
        found: Its proxy variance on the half of the draws that it was found on.
        held_out: Its proxy variance on the other half: free of the search's optimism.
    """

    direction: Array
    found: ProxyVariance
    held_out: ProxyVariance


def proxy_variance(sample: ArrayLike) -> ProxyVariance:
    """Return the proxy variance of draws of shape (n,), centred by their mean."""
    values = draws(sample, 1)
    centred = values - values.mean()
    variance = float(np.mean(centred**2))
    largest = reach(len(values)) / math.sqrt(variance)
    step = largest / TILTS
    tilts = step * np.concatenate([np.arange(-TILTS, 0), np.arange(1, TILTS + 1)])

    def ratio(tilt: float) -> float:
        log_mgf, _ = relative_weights(centred, np.array([tilt]))
        return 2 * float(log_mgf[0]) / tilt**2

    ratios = [ratio(tilt) for tilt in tilts.tolist()]
    best = float(tilts[int(np.argmax(ratios))])
    # between the neighbours of the best tilt, on its side of zero and within reach
    low = max(abs(best) - step, step / 8)
    high = min(abs(best) + step, largest)
    sign = math.copysign(1.0, best)
    refined = -minimum(lambda size: -ratio(sign * size), low, high)
    value = max(variance, refined, max(ratios))
    return ProxyVariance(value, best, variance, largest)


def directional_proxy_variances(
    sample: ArrayLike, directions: ArrayLike
) -> list[ProxyVariance]:
    """Return the proxy variance along each direction.

    Args:
        sample: Draws, of shape (n, d).
        directions: Non-zero vectors, of shape (m, d); their lengths do not matter.

    Raises:
        ValueError: Shapes disagree, a direction is zero, or the sample is constant
            along one.
    """
    tokens, along = draws(sample, 2), np.asarray(directions, dtype=float)
    if along.ndim != 2 or along.shape[1] != tokens.shape[1]:
        raise ValueError(
            f"directions must have shape (m, {tokens.shape[1]}); got {along.shape}"
        )
    lengths = np.linalg.norm(along, axis=1, keepdims=True)
    if not (np.isfinite(lengths) & (lengths > 0)).all():
        raise ValueError("directions must be finite and not zero; got one that is")
    return [proxy_variance(tokens @ unit) for unit in along / lengths]


def worst_direction(sample: ArrayLike) -> WorstDirection:
    r"""Search for the direction of largest proxy variance.

    On the even rows: for fixed sizes $\rho$, iterate
    $e \leftarrow \nabla\hat\Lambda_c(\rho e)/\|\cdot\|$ from both signs of the leading
    principal axes, which ascends $\hat\Lambda_c(\rho e)$ because $\hat\Lambda_c$ is
    convex (docs/theory.md, equation (10.5)). A local search: the supremum may be
    larger.
    On the odd rows the direction found is measured again.

    Args:
        sample: Draws in no particular order, of shape (n, d) with $n \ge 8$.
    """
    tokens = draws(sample, 2)
    if len(tokens) < 8:
        raise ValueError(f"a search needs at least 8 draws; got {len(tokens)}")
    seen, held_out = tokens[::2], tokens[1::2]
    centred = seen - seen.mean(axis=0)
    variances, axes = np.linalg.eigh(centred.T @ centred / len(centred))
    leading = axes[:, np.argsort(variances)[::-1][:STARTS]].T
    starts = np.concatenate([leading, -leading])
    largest = reach(len(seen)) / math.sqrt(float(variances.max()))
    sizes = largest * np.arange(1, SIZES + 1) / SIZES
    found = [_ascend(centred, start, size) for size in sizes for start in starts]
    ratio, direction = max(found, key=lambda pair: pair[0])
    assert ratio > 0, "the cumulant of a centred sample is positive"
    return WorstDirection(
        direction=direction,
        found=proxy_variance(seen @ direction),
        held_out=proxy_variance(held_out @ direction),
    )


def _ascend(centred: Array, start: Array, size: float) -> tuple[float, Array]:
    r"""Return $2\hat\Lambda_c(\rho e)/\rho^2$ and $e$ at the end of the iteration."""
    direction = start
    for _ in range(TURNS):
        _, weights = relative_weights(centred @ direction, np.array([size]))
        slope = weights[0] @ centred
        step = slope / np.linalg.norm(slope)
        if np.abs(step - direction).max() < 1e-10:
            break
        direction = step
    log_mgf, _ = relative_weights(centred @ direction, np.array([size]))
    return 2 * float(log_mgf[0]) / size**2, direction
