r"""Sets that answer through their moments alone, and when to trust which order.

| order | log-mass | output |
|---|---|---|
| 0 | $\log n + u \cdot \bar k$ | $\bar v$ |
| 1 | the same | $\bar v + \mathrm{Cov}(v, k)\, u$ |
| 2 | $\log n + u \cdot \bar k + \int_0^s \sigma (1 - \varphi)\, d\sigma$ | $\bar v + (1 - \varphi) \mathrm{Cov}(v, k)\, u$ |

Order 2 is the exact law of n Gaussian tokens, $\varphi = \varphi(n, s)$ (docs/theory.md,
section 14.2): the plain $s^2/2$ promises more mass than n tokens can hold.
"""  # noqa: E501

import functools

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.calibration import look
from largeprompt.compress.sets import LinearSets
from largeprompt.compress.summary import Summary, summarise
from largeprompt.laws.exact import gaussian_law

ORDERS = (2, 1, 0)  # what is tried, in this order, before the tokens are kept
REACH = 12.0  # of the tables of the law, in s
POINTS = 49


def moment_sets(summary: Summary, group: int, order: int) -> LinearSets:
    """Return sets that answer by their moments up to an order.

    Args:
        summary: The moments of `c` sets of one KV head.
        group: How many query heads read the KV head.
        order: 0, 1 or 2.

    Raises:
        ValueError: The order is none of these.
    """
    if order not in ORDERS:
        raise ValueError(f"order must be 0, 1 or 2; got {order}")
    variances, axes = torch.linalg.eigh(summary.key_covariance)
    count = len(summary.count)
    laws = [finite_law(float(n)) for n in summary.count]
    gain, damping = (
        torch.stack(table).to(axes.device) for table in zip(*laws, strict=True)
    )
    if order < 2:
        gain, damping = torch.zeros_like(gain), torch.ones_like(damping)
    return LinearSets(
        base=summary.count.log().expand(group, count),
        key_mean=summary.key_mean,
        value_mean=summary.value_mean,
        directions=axes.mT,
        variances=variances.clamp_min(0) if order == 2 else torch.zeros_like(variances),
        responses=summary.response @ axes * (order > 0),
        gain=gain.expand(group, count, POINTS),
        damping=damping.expand(group, count, POINTS),
        reach=torch.full((count,), REACH, device=axes.device),
    )


@functools.lru_cache(4096)
def finite_law(n: float) -> tuple[Float[Tensor, " t"], Float[Tensor, " t"]]:
    r"""Return $\int_0^s \sigma(1 - \varphi)\,d\sigma$ and $1 - \varphi$ at n tokens.

    At `POINTS` equidistant s of [0, `REACH`]; two Gauss nodes a panel. No tokens: the
    law of one.
    """
    s = np.linspace(0.0, REACH, POINTS)
    nodes, weights = np.polynomial.legendre.leggauss(2)
    half = REACH / (POINTS - 1) / 2
    inner = s[:-1, None] + half * (nodes + 1)
    n = max(n, 1.0)
    panels = (inner * gaussian_law(n, inner**2).shrinkage) @ weights * half
    gain = np.concatenate([[0.0], np.cumsum(panels)])
    damping = gaussian_law(n, s**2).shrinkage
    return torch.from_numpy(gain).float(), torch.from_numpy(damping).float()


def trusted_sets(
    tilt: Float[Tensor, "g m k"],
    key: Float[Tensor, "n k"],
    value: Float[Tensor, "n v"],
    members: Bool[Tensor, " n"],
    tolerance: float,
) -> LinearSets | None:
    r"""Return the moments of highest order that answer within a tolerance, or None.

    The error of a tilt is $\|e^{\delta} \hat o - o\| / \|o\|$, $\delta$ the log-mass's
    error; its median over the tilts counts. None says: keep the tokens.

    Args:
        tilt: Queries to try the orders on.
        key: Keys of one KV head.
        value: Values.
        members: The set.
        tolerance: The largest median error, relative.
    """
    truth = look(tilt, key, None).of(members, value)
    summary = summarise(key[None], value[None], members[None])
    for order in ORDERS:
        sets = moment_sets(summary, tilt.shape[0], order)
        if float(set_errors(sets.answer(tilt), truth).median()) <= tolerance:
            return sets
    return None


def set_errors(guess: Answer, truth: Answer) -> Float[Tensor, "g m"]:
    """Return the relative error of what one set adds to an output."""
    factor = (guess.log_mass[..., 0] - truth.log_mass).exp()[..., None]
    size = truth.output.norm(dim=-1).clamp_min(1e-30)
    return (factor * guess.output[..., 0, :] - truth.output).norm(dim=-1) / size
