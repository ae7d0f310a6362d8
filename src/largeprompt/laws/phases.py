r"""The three regimes of a prompt of `n` tokens whose logits have variance $s^2$.

The softmax over $n$ Gaussian logits is a random energy model at inverse temperature
$s$: it concentrates, then fluctuates with heavy tails, then freezes on a few tokens, as
$s$ grows at fixed $n$ (docs/theory.md, section 3). These are asymptotic boundaries; at
real lengths the exact law is the number to quote.
"""

import enum
import math


class Phase(enum.StrEnum):
    r"""How softmax over a prompt behaves; boundaries in units of $\log n$.

    | phase          | logit variance                     | typical error            |
    |----------------|------------------------------------|--------------------------|
    | `LINEAR`       | $s^2 \le \frac12 \log n$           | Gaussian, $1/\sqrt n$    |
    | `HEAVY_TAILED` | $\frac12\log n < s^2 \le 2 \log n$ | decays slower            |
    | `FROZEN`       | $s^2 > 2 \log n$                   | none of the limit is seen |
    """

    LINEAR = "linear"
    HEAVY_TAILED = "heavy-tailed"
    FROZEN = "frozen"


def phase(n: float, logit_variance: float) -> Phase:
    r"""Return the phase of a prompt of `n` tokens with logits of this variance.

    Raises:
        ValueError: `n` is below 1, or the variance negative, or either not a number.

    Source: random energy model, derived in docs/theory.md, section 3.
    """
    if not n >= 1:
        raise ValueError(f"n must be a number of at least 1; got {n}")
    if not logit_variance >= 0:
        raise ValueError(
            f"logit_variance must be a number of at least 0; got {logit_variance}"
        )
    if logit_variance <= math.log(n) / 2:
        return Phase.LINEAR
    if logit_variance <= 2 * math.log(n):
        return Phase.HEAVY_TAILED
    return Phase.FROZEN


def linear_length(logit_variance: float) -> float:
    r"""Return $e^{2 s^2}$, the length from which a head is in the linear phase."""
    return _exp(2 * logit_variance)


def frozen_length(logit_variance: float) -> float:
    r"""Return $e^{s^2/2}$, the length below which a head is frozen."""
    return _exp(logit_variance / 2)


def _exp(x: float) -> float:
    """The exponential, infinite where a float cannot hold it."""
    return math.exp(x) if x < 709.0 else math.inf
