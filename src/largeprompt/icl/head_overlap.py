r"""Joint second moments of two heads that read the same Gaussian tokens.

Two heads weigh token $i$ by $w_i \propto e^{s_1 g_i}$ and by
$w'_i \propto e^{b_1 g_i + b_2 h_i}$, with independent standard normal $g_i, h_i$.
Writing both normalisers as Laplace integrals, with $y = e^{\tau + s_1 g}$,
$y' = e^{\tau' + b_1 g + b_2 h}$ and $L = E e^{-y - y'}$, every joint moment is a
double integral over $(\tau, \tau')$ of

$$ n\, E[y y' f e^{-y-y'}]\, L^{n-1} \quad\text{and}\quad
   n(n-1)\, E[y f e^{-y-y'}]\, E[y' f' e^{-y-y'}]\, L^{n-2} . $$

Given $g$ the two exponentials factor, so each inner expectation on the whole grid is
one matrix product (docs/theory.md, section 11.4).
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

STEP = 0.4  # of tau: the aliasing error |Gamma(2 + 2 pi i / STEP)| is 1e-9
NORMAL_STEP = 0.7  # of g and h
NORMAL_REACH = 8.0  # standard deviations
DEPTH = 21.0  # nats below its peak at which an integrand is cut: 1e-9
BLOCK = 16  # pairs at once: their grids fit in the cache
SMALLEST = 1e-5  # stands for a zero coefficient: everything is analytic there
LARGEST_N = 1e7  # log L keeps nine digits in L^n


class HeadOverlap(NamedTuple):
    r"""Joint moments, one for each pair of heads given.

    Attributes:
        shared: $E \sum_i w_i w'_i$.
        moment: $E[(\sum_i w_i r_i)(\sum_j w'_j r_j)^\top]$ for $r = (g, h)$.
    """

    shared: Float[Tensor, " p"]
    moment: Float[Tensor, "p 2 2"]


def head_overlap(
    n: float,
    first: Float[Tensor, " p"],
    along: Float[Tensor, " p"],
    across: Float[Tensor, " p"],
) -> HeadOverlap:
    r"""Return the joint moments of pairs of heads, to about 1e-8; differentiable.

    Args:
        n: Prompt length from 1 to $10^7$.
        first: $s_1 \ge 0$, the standard deviation of the first head's logits.
        along: $b_1$, of any sign: opposite heads have $b_1 = -s_1$.
        across: $b_2 \ge 0$.

    Raises:
        ValueError: `n` is outside its range.

    Source: derived in docs/theory.md, section 11.4.
    """
    if not 1 <= n <= LARGEST_N:
        raise ValueError(f"n must be a number from 1 to {LARGEST_N:g}; got {n}")
    scales = torch.stack([first, torch.hypot(along, across)])  # 2 p
    lows, highs = _bounds(n, scales.detach())
    along_g = torch.maximum(first, along.abs()).detach()
    # pairs of a block share the sizes of their grids
    order = scales.detach().amax(0).argsort()
    wide = across.detach()[order] * NORMAL_STEP >= STEP
    groups = [group for group in (order[wide], order[~wide]) if len(group)]
    places = [block for group in groups for block in group.split(BLOCK)]
    parts = []
    for block in places:
        count = math.ceil(float((highs - lows)[:, block].max()) / STEP) + 1
        grid = STEP * torch.arange(count, dtype=first.dtype)
        taus = lows[:, block].unsqueeze(-1) + grid  # 2 p tau
        g = normal_nodes(float(along_g[block].max()))
        y = _exp(taus[0].unsqueeze(-1) + first[block, None, None] * g)
        centre = taus[1].unsqueeze(-1) + along[block, None, None] * g
        parts.append(_moments(n, y, g, _averages(centre, across[block])))
    back = torch.cat(places).argsort()
    shared, moment = (torch.cat(column)[back] for column in zip(*parts, strict=True))
    return HeadOverlap(shared, moment)


def normal_nodes(scale: float) -> Float[Tensor, " g"]:
    """Return nodes of a trapezoid rule for a normal variable in the logit."""
    step = min(NORMAL_STEP, STEP / max(scale, SMALLEST))
    reach = math.ceil(NORMAL_REACH / step)
    return step * torch.arange(-reach, reach + 1, dtype=torch.float64)


class _Averages(NamedTuple):
    r"""Averages over $h$: of $h^j e^{-y'}$, then of $h^j y' e^{-y'}$; p tau' g each."""

    plain: tuple[Tensor, Tensor]
    heavy: tuple[Tensor, Tensor, Tensor]


def _averages(
    centre: Float[Tensor, "p tau g"], across: Float[Tensor, " p"]
) -> _Averages:
    r"""Average over $h$ at $\log y' =$ `centre` $+ b_2 h$.

    Where $b_2$ is not small, steps of $h$ move $\log y'$ along the grid of $\tau'$: the
    averages are convolutions, and each exponential serves many $h$.
    """
    if float(across.detach().min()) * NORMAL_STEP < STEP:
        h = normal_nodes(float(across.detach().max()))
        density = normal_weights(h, h[1] - h[0])
        y = _exp(centre.unsqueeze(-1) + across[:, None, None, None] * h)
        kernels = torch.stack([density, density * h, density * h**2], -1)
        plain = torch.exp(-y)
        zero, one = (plain @ kernels[:, :2]).unbind(-1)
        zero_y, one_y, two_y = ((plain * y) @ kernels).unbind(-1)
        return _Averages((zero, one), (zero_y, one_y, two_y))
    reach = math.ceil(NORMAL_REACH * float(across.detach().max()) / STEP)
    size = centre.shape[1]
    shifts = STEP * torch.arange(-reach, reach + 1, dtype=centre.dtype)
    before = centre[:, :1] + shifts[:reach, None]
    after = centre[:, -1:] + shifts[reach + 1 :, None]
    y = _exp(torch.cat([before, centre, after], dim=1))
    plain = torch.exp(-y)
    h = shifts / across.unsqueeze(-1)  # p h
    density = normal_weights(h, STEP / across.unsqueeze(-1))
    lag = torch.arange(size + 2 * reach) - torch.arange(size).unsqueeze(-1)
    inside = (lag >= 0) & (lag <= 2 * reach)
    lag = lag.clamp(0, 2 * reach)

    def average(values: Tensor, power: int) -> Tensor:
        kernel = density * h**power
        return (kernel[:, lag] * inside) @ values

    heavy = plain * y
    return _Averages(
        (average(plain, 0), average(plain, 1)),
        (average(heavy, 0), average(heavy, 1), average(heavy, 2)),
    )


def normal_weights(nodes: Tensor, step: Tensor) -> Tensor:
    """Return the weights of the trapezoid rule at `nodes`."""
    return step / math.sqrt(2 * math.pi) * torch.exp(-(nodes**2) / 2)


def _moments(
    n: float,
    y: Float[Tensor, "p tau g"],
    g: Float[Tensor, " g"],
    averages: _Averages,
) -> HeadOverlap:
    r"""Integrate over both $\tau$, given the averages over $h$."""
    left = torch.exp(-y) * normal_weights(g, g[1] - g[0])
    heavy = left * y
    (zero, one), (zero_y, one_y, two_y) = averages

    def mean(a: Tensor, b: Tensor) -> Tensor:
        return a @ b.mT  # p tau tau'

    log_transform = torch.log(mean(left, zero).clamp(min=1e-300))
    others = n * STEP**2 * torch.exp((n - 1) * log_transform)
    pairs = n * (n - 1) * STEP**2 * torch.exp((n - 2) * log_transform)

    def one_token(a: Tensor, b: Tensor) -> Tensor:
        return (others * mean(a, b)).sum((-1, -2))

    first = torch.stack([mean(heavy * g, zero), mean(heavy, one)], 1)
    second = torch.stack([mean(left * g, zero_y), mean(left, one_y)], 1)
    two_tokens = torch.einsum("pst,pist,pjst->pij", pairs, first, second)
    mixed = one_token(heavy * g, one_y)
    entries = [one_token(heavy * g**2, zero_y), mixed, mixed, one_token(heavy, two_y)]
    same_token = torch.stack(entries, -1).unflatten(-1, (2, 2))
    return HeadOverlap(one_token(heavy, zero_y), same_token + two_tokens)


def _exp(exponent: Tensor) -> Tensor:
    """Return the exponential, cut where $e^{-y}$ is zero already."""
    return torch.exp(exponent.clamp(max=7.0))


def _bounds(n: float, scale: Tensor) -> tuple[Tensor, Tensor]:
    r"""Return where the integrands of one head begin and end in $\tau$.

    On the left $n E[y e^{-y}]$ is `DEPTH` nats below its peak; on the right $n(1 - L)$
    is above 60, or $L \le 2 e^{-60/n - 1}$ because $g > -x$ there.
    """
    log_n = math.log(n)
    low = -_crossing(log_n + DEPTH, scale) - 1.0
    share = 60.0 / n + 1
    high = scale * math.sqrt(2 * share) + math.log(share)
    above = log_n - math.log(60) - 3
    if above > 0:
        high = torch.minimum(high, 4.5 - _crossing(above, scale))
    return low, high


def _crossing(log_n: float, scale: Tensor) -> Tensor:
    r"""Return $\lambda$ with $n (1 - L(-\lambda)) \approx 1$."""
    many = log_n + scale**2 / 2
    few = scale * math.sqrt(2 * log_n)
    return torch.where(2 * log_n > scale**2, many, few)
