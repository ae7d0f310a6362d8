r"""The exact drift of a doubling prompt, smooth in length and logit variance."""

import dataclasses
import functools
import math
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import RectBivariateSpline

from largeprompt.laws.drift import drift_law
from largeprompt.laws.exact import LARGEST_LOGIT_VARIANCE

LONGEST = 1e7  # tokens of the shorter prompt
LENGTHS = 14  # nodes in log n
SCALES = 18  # nodes in s, from 0 to 20
MIRRORED = 4  # nodes in s that are repeated below 0: every field is even in s

Array = NDArray[np.float64]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class DriftSurface:
    r"""`drift_law(n, n, s^2)` by cubic splines in $(\log n, s)$, to about 1%.

    Attributes:
        log_across: $\log \alpha$.
        excess_ratio: $\epsilon / \alpha$.
    """

    log_across: RectBivariateSpline
    excess_ratio: RectBivariateSpline

    def mean_square(
        self,
        n: ArrayLike,
        logit_variance: ArrayLike,
        response: ArrayLike,
        variance: ArrayLike,
    ) -> Array:
        r"""Return $E\|T_{2n} - T_n\|^2$, the arguments broadcast.

        Logit variances above 400 are taken at 400 and lengths above 1e7 at 1e7: neither
        is met in a text.

        Args:
            n: Tokens of the shorter prompt.
            logit_variance: $s^2$.
            response: $\|\mathrm{Cov}(v, k) q\|^2$.
            variance: $\mathrm{tr}\,\mathrm{Cov}(v)$.
        """
        length, s2 = np.broadcast_arrays(
            np.clip(np.asarray(n, float), 1, LONGEST),
            np.minimum(logit_variance, LARGEST_LOGIT_VARIANCE),
        )
        log_n, s = np.log(length), np.sqrt(s2)
        across = np.exp(np.asarray(self.log_across(log_n, s, grid=False)))
        ratio = np.asarray(self.excess_ratio(log_n, s, grid=False))
        return across * (np.asarray(variance) + ratio * np.asarray(response))


@functools.cache
def drift_surface() -> DriftSurface:
    """Return the surface, tabulated once a process; it takes a second or two."""
    log_n = np.linspace(0, math.log(LONGEST), LENGTHS)
    t = np.linspace(0, 1, SCALES)
    s = math.sqrt(LARGEST_LOGIT_VARIANCE) * t * (0.4 + 0.6 * t)
    laws = [[drift_law(n, n, x) for x in s**2] for n in np.exp(log_n)]
    across = np.array([[law.across for law in row] for row in laws])
    excess = np.array([[law.parallel_excess for law in row] for row in laws])
    odd = np.concatenate([-s[MIRRORED:0:-1], s])

    def spline(values: Array) -> RectBivariateSpline:
        even = np.concatenate([values[:, MIRRORED:0:-1], values], axis=1)
        return RectBivariateSpline(log_n, odd, even)

    return DriftSurface(spline(np.log(across)), spline(excess / across))
