r"""Plan a prompt: two of length, error and logit variance give the third.

The error is the root mean square of the output's distance to its large-prompt limit,
relative to the root mean square size of a value, for isotropic Gaussian tokens:
$\varepsilon^2 = (\psi + (d - 1)\phi)/d$ with $\phi, \psi$ of the exact law. Values that
are not isotropic have an effective dimension $d$ instead, see `laws.spectrum`.
"""

import bisect
import dataclasses
import math
from collections.abc import Callable
from typing import final

from largeprompt.errors import UnreachableTargetError
from largeprompt.laws.exact import LARGEST_LOGIT_VARIANCE, LARGEST_N, gaussian_law
from largeprompt.laws.phases import Phase, phase

VARIANCE_STEPS = 2**44  # resolution of a solved logit variance: 400 / 2^44


@final
@dataclasses.dataclass(frozen=True)
class Plan:
    r"""A prompt length, the error it achieves, and the head it is achieved for.

    Attributes:
        n: The prompt length, in tokens.
        eps: The achieved relative root-mean-square error.
        logit_variance: The variance of the logits, $s^2$.
        dim: The dimension of the values, or their effective one.
        inverse_ess: The expected inverse effective sample size, $\phi$.
        phase: The phase of the prompt.
    """

    n: int
    eps: float
    logit_variance: float
    dim: float
    inverse_ess: float
    phase: Phase


def solve(
    *,
    n: int | None = None,
    eps: float | None = None,
    logit_variance: float | None = None,
    dim: float = 64,
) -> Plan:
    r"""Solve for the one of `n`, `eps` and `logit_variance` that is not given.

    A solved `n` is the smallest that meets `eps`, a solved `logit_variance` the
    largest; `eps` in the answer is the error achieved.

    Args:
        n: Prompt length, an integer from 1 to $10^{15}$.
        eps: Relative root-mean-square error, above 0.
        logit_variance: $s^2$ from 0 to 400.
        dim: Dimension of the values, at least 1; effective ones need not be whole,
            and are infinite where the values do not show the tilt.

    Raises:
        ValueError: Not exactly one unknown, or an argument outside its range.
        UnreachableTargetError: No admissible value of the unknown meets `eps`.
    """
    given = {"n": n, "eps": eps, "logit_variance": logit_variance}
    unknown = [name for name, value in given.items() if value is None]
    if len(unknown) != 1:
        raise ValueError(
            "exactly one of n, eps and logit_variance must be left out; "
            f"got {', '.join(unknown) or 'none'} left out"
        )
    if not dim >= 1:
        raise ValueError(f"dim must be at least 1; got {dim}")
    if eps is not None and not 0 < eps < math.inf:
        raise ValueError(f"eps must be a number above 0; got {eps}")
    if n is None:
        assert eps is not None, "one unknown"
        assert logit_variance is not None, "one unknown"
        n = smallest_n(lambda size: isotropic_error(size, logit_variance, dim), eps)
    elif logit_variance is None:
        assert eps is not None, "one unknown"
        logit_variance = largest_logit_variance(n, eps, dim)
    law = gaussian_law(n, logit_variance)
    return Plan(
        n=n,
        eps=isotropic_error(n, logit_variance, dim),
        logit_variance=logit_variance,
        dim=dim,
        inverse_ess=float(law.inverse_ess),
        phase=phase(n, logit_variance),
    )


def isotropic_error(n: float, logit_variance: float, dim: float) -> float:
    r"""Return $\varepsilon$ at one point; $d = \infty$ leaves $\sqrt\phi$."""
    law = gaussian_law(n, logit_variance)
    response = logit_variance / dim
    return math.sqrt(law.mean_square_error(response=response, variance=1.0))


def smallest_n(error: Callable[[float], float], target: float) -> int:
    r"""Return the smallest integer $n$ up to $10^{15}$ with `error(n) <= target`.

    Args:
        error: A positive decreasing function of the prompt length.
        target: The largest error accepted, above 0.

    Raises:
        UnreachableTargetError: Even $10^{15}$ tokens leave a larger error.
    """
    if error(1.0) <= target:
        return 1
    if (best := error(LARGEST_N)) > target:
        raise UnreachableTargetError(
            f"no prompt of up to {LARGEST_N:g} tokens reaches an error of {target:g}; "
            f"the error at {LARGEST_N:g} tokens is {best:.4g}"
        )
    low, high = 1, int(LARGEST_N)  # error(low) > target >= error(high)
    low_gap, high_gap = math.log(error(low) / target), math.log(best / target)
    turn = 0
    while high - low > 1:
        # error is close to a power of n, so its logarithm is interpolated in log n;
        # every third turn halves the bracket, which bounds the number of turns
        share = 0.5 if turn % 3 == 2 else low_gap / (low_gap - high_gap)
        middle = round(low * (high / low) ** share)
        middle = min(max(middle, low + 1), high - 1)
        gap = math.log(error(middle) / target)
        if gap > 0:
            # the interpolation stops short of the root: step past it next time
            low, low_gap, high_gap = middle, gap, high_gap / 2
        else:
            high, high_gap, low_gap = middle, gap, low_gap / 2
        turn += 1
    return high


def largest_logit_variance(n: float, eps: float, dim: float) -> float:
    """Return the largest logit variance up to 400 at which `n` tokens meet `eps`.

    Raises:
        UnreachableTargetError: No logit variance, or every one up to 400, meets `eps`.
    """
    step = LARGEST_LOGIT_VARIANCE / VARIANCE_STEPS
    if (least := isotropic_error(n, 0.0, dim)) > eps:
        raise UnreachableTargetError(
            f"no logit variance lets {n} tokens reach an error of {eps:g}; "
            f"uniform weights leave {least:.4g}"
        )
    if (most := isotropic_error(n, LARGEST_LOGIT_VARIANCE, dim)) <= eps:
        raise UnreachableTargetError(
            f"every logit variance up to {LARGEST_LOGIT_VARIANCE:g} lets {n} tokens "
            f"reach an error of {eps:g}; the largest leaves {most:.4g}"
        )
    index = bisect.bisect_right(
        range(VARIANCE_STEPS),
        eps,
        key=lambda i: isotropic_error(n, i * step, dim),
    )
    return (index - 1) * step
