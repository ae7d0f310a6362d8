"""What the exact law of Gaussian tokens says about the numbers of an audit."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from largeprompt.audit.surface import LawSurface
from largeprompt.laws.exact import LARGEST_N, GaussianLaw

Array = NDArray[np.float64]


def held_out_mean_square(
    law: GaussianLaw, moments: ArrayLike, response: ArrayLike, variance: ArrayLike
) -> Array:
    r"""Return the mean square of limit_error_held_out for Gaussian tokens.

    Attention over $n$ tokens meets the limit $\hat L = \bar v + \hat C q$ whose moments
    come from $n'$ other tokens, divided by $n'$. For Gaussian tokens $\bar v$ and
    $\hat C$ are independent and $n' \hat C$ is a block of a Wishart matrix with
    $n' - 1$ degrees of freedom, so with $c = \mathrm{Cov}(v, k) q$

    $$ E\|\hat L - L\|^2 = \frac{(1 + s^2 (1 - 1/n'))\,\mathrm{tr}\,\mathrm{Cov}(v)
       + \|c\|^2}{n'}, \qquad E \hat L - L = -\frac{c}{n'} . $$

    The two sets are independent and $E T_n - L = -\phi c$, hence

    $$ E\|T_n - \hat L\|^2 = E\|T_n - L\|^2 + E\|\hat L - L\|^2
       - \frac{2 \phi}{n'} \|c\|^2, $$

    exact for every $n$ and $n'$ (derived in docs/theory.md, section 2.4).

    Args:
        law: The law of the attended tokens, at their number and logit variance.
        moments: $n'$, the number of tokens that give the moments.
        response: $\|c\|^2$.
        variance: $\mathrm{tr}\,\mathrm{Cov}(v)$.
    """
    count, response = np.asarray(moments, float), np.asarray(response, float)
    spread = np.asarray(variance, float) * (1 + law.logit_variance * (1 - 1 / count))
    estimation = (spread + response) / count
    overlap = 2 * law.inverse_ess * response / count
    return law.mean_square_error(response, variance) + estimation - overlap


def tokens_needed(
    law: LawSurface,
    logit_variance: ArrayLike,
    response: ArrayLike,
    variance: ArrayLike,
    target: ArrayLike,
) -> Array:
    """Return the smallest n whose mean-square error is at most `target`, for each head.

    Extrapolates: the tokens are independent Gaussians, and neither the logit variance
    nor the moments change with the length. NaN when more than 1e15 tokens are needed.
    """
    logit_variance, response, variance, target = np.broadcast_arrays(
        logit_variance, response, variance, target
    )

    def met(n: Array) -> NDArray[np.bool_]:
        return law(n, logit_variance).mean_square_error(response, variance) <= target

    low, high = np.zeros(target.shape), np.full(target.shape, LARGEST_N)
    reached = met(high)
    high[met(np.ones_like(low))] = 1  # not met at low, met at high
    while ((high - low) > 1).any():
        # the geometric middle, inside the bracket: lengths span fifteen decades
        between = np.round(np.sqrt(low * high)).astype(np.float64)
        middle = np.clip(between, low + 1, np.maximum(high - 1, 1)).astype(np.float64)
        here = met(middle)
        high, low = np.where(here, middle, high), np.where(here, low, middle)
    return np.where(reached, high, np.nan)
