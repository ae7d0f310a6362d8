r"""What the order-two limit of a set of tokens answers, at infinite or finite length.

Taken literally the Gaussian limit promises a log-mass $\log n + \bar\ell + s^2/2$ that
$n$ tokens cannot hold once $s^2$ passes $2 \log n$. The exact law of $n$ Gaussian
tokens says what they do hold: $\frac{d}{ds} E \log \sum_j e^{s g_j} = s (1 - \phi)$, so
the gain is $\int_0^s \sigma (1 - \phi(n, \sigma))\, d\sigma$, and the response is
shrunk by $1 - \phi$ (docs/theory.md, sections 2 and 16).
"""

import enum
import functools
import math
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.integrate import cumulative_simpson
from scipy.interpolate import RectBivariateSpline

from largeprompt.audit.limits import Answer, Moments
from largeprompt.audit.surface import law_surface
from largeprompt.laws.exact import LARGEST_LOGIT_VARIANCE

LENGTHS = 60  # nodes in log n, from 1 to LONGEST
LONGEST = 1e8
STEPS = 400  # of the integral in s, from 0 to LARGEST
LARGEST = math.sqrt(LARGEST_LOGIT_VARIANCE)
EVERY = 4  # steps between two nodes of the surface

Array = NDArray[np.float64]


@final
class Bulk(enum.StrEnum):
    """By which law the bulk of a prefix answers."""

    LIMIT = "limit"  # the infinite prompt, taken literally
    FINITE = "finite"  # the exact law of as many Gaussian tokens as there are


def answer(moments: Moments, bulk: Bulk) -> Answer:
    """Return what Gaussian tokens with these moments answer; -inf for none."""
    if bulk is Bulk.LIMIT:
        return moments.limit()
    gain, shrinkage = finite_response(
        moments.count.clamp_min(1).cpu().numpy(), moments.logit_variance.cpu().numpy()
    )
    like = moments.logit_mean
    return Answer(
        moments.count.log() + moments.logit_mean + torch.from_numpy(gain).to(like),
        moments.value_mean
        + torch.from_numpy(shrinkage).to(like)[..., None] * moments.shift,
    )


def finite_response(n: Array, logit_variance: Array) -> tuple[Array, Array]:
    r"""Return the gain of log-mass and $1 - \phi$ at each length and logit variance.

    Beyond a logit variance of 400 the gain goes on with the slope it has there and
    $\phi$ stays: attention rests on single tokens.
    """
    s = np.sqrt(logit_variance)
    inside = np.minimum(s, LARGEST)
    shrinkage = law_surface()(n, inside**2).shrinkage
    ratio = np.asarray(_gain_ratio()(np.log(n), inside, grid=False))
    beyond = LARGEST * shrinkage * (s - inside)
    return inside**2 * ratio + beyond, shrinkage


@functools.cache
def _gain_ratio() -> RectBivariateSpline:
    r"""The gain divided by $s^2$, from $(1 - 1/n)/2$ at $s = 0$; smooth in both."""
    log_n = np.linspace(0, math.log(LONGEST), LENGTHS)
    s = np.linspace(0, LARGEST, STEPS + 1)
    shrinkage = law_surface()(np.exp(log_n)[:, None], s**2).shrinkage
    gain = cumulative_simpson(s * shrinkage, x=s, axis=1, initial=0)
    ratio = np.empty_like(gain)
    ratio[:, 1:] = gain[:, 1:] / s[1:] ** 2
    ratio[:, 0] = shrinkage[:, 0] / 2
    return RectBivariateSpline(log_n, s[::EVERY], ratio[:, ::EVERY])
