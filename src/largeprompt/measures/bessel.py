r"""The cumulant function of a sphere, as a smooth function of the squared tilt.

For $x$ uniform on the unit sphere of $\mathbb{R}^d$ and $\kappa = |t|$, with
$\nu = d/2 - 1$,

$$ F = \log \mathbb{E} e^{t \cdot x}
     = \log\big(\Gamma(\nu+1) (\kappa/2)^{-\nu} I_\nu(\kappa)\big) . $$

Everything is a function of $\kappa^2$, with the derivation
$D = \frac1\kappa \frac{d}{d\kappa}$: $\nabla F = DF\, t$ and
$\nabla^2 F = DF\, I + D^2F\, t t^\top$, where $DF = A_d(\kappa)/\kappa$ and
$A_d = I_{d/2}/I_{d/2-1}$. Two routes, both without cancellation: a power series with
positive terms, and Debye's uniform expansion where $\rho = \sqrt{\nu^2 + \kappa^2}$ is
large. Derived in docs/theory.md, section 1.
"""

import functools
import itertools
import math
from fractions import Fraction
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

_UNIFORM_FROM = 50.0  # the expansion's first neglected term is below 1e-16 from here on
_ORDERS = 10
_SERIES_TERMS = 70  # enough for kappa <= _UNIFORM_FROM in every dimension


class RadialCumulant(NamedTuple):
    """The function $F$ and its derivatives $DF$ and $D^2F$ at the same points."""

    value: Float[Tensor, "*batch"]
    first: Float[Tensor, "*batch"]
    second: Float[Tensor, "*batch"]


def sphere_cumulant(d: int, squared: Float[Tensor, "*batch"]) -> RadialCumulant:
    r"""Return $F$, $DF$ and $D^2F$ for the unit sphere of $\mathbb{R}^d$.

    Args:
        d: The dimension, at least 1.
        squared: The squared size $\kappa^2$ of the tilt.
    """
    order = d / 2 - 1
    if order >= _UNIFORM_FROM:
        return _uniform_expansion(order, squared)
    border = _UNIFORM_FROM**2 - order**2
    near = squared < border
    series = _power_series(d, torch.where(near, squared, 0))
    uniform = _uniform_expansion(order, torch.where(near, border, squared))
    pairs = zip(series, uniform, strict=True)
    return RadialCumulant(*(torch.where(near, a, b) for a, b in pairs))


def _power_series(d: int, squared: Tensor) -> RadialCumulant:
    r"""Sum ${}_0F_1(; d/2; \kappa^2/4)$ and the two series of its derivatives."""
    shift = torch.arange(3, dtype=squared.dtype, device=squared.device)
    excess = _hypergeometric_excess(d / 2 + shift, squared.unsqueeze(-1) / 4)
    zeroth, first, second = excess.unbind(-1)
    slope = (1 + first) / (d * (1 + zeroth))
    curvature = (1 + second) / (d * (d + 2) * (1 + zeroth)) - slope.square()
    return RadialCumulant(torch.log1p(zeroth), slope, curvature)


def _hypergeometric_excess(a: Tensor, y: Tensor) -> Tensor:
    r"""Return ${}_0F_1(; a; y) - 1 = \sum_{k \ge 1} y^k / (k! (a)_k)$."""
    excess = torch.zeros_like(y)
    for k in range(_SERIES_TERMS, 0, -1):
        excess = (1 + excess) * y / (k * (a + k - 1))
    return excess


def _uniform_expansion(order: float, squared: Tensor) -> RadialCumulant:
    r"""Return Debye's expansion of $F$ in powers of $1/\rho$, and its derivatives.

    $F = \rho - \nu\log(\nu + \rho) - \frac12\log\rho + \log S + \text{const}$, where
    $S = 1 + \sum_k u_k(\nu/\rho)/\nu^k$ [DLMF, 10.41.3 and 10.41.7]. With a large order
    the constant is the value at zero, so that $F$ vanishes there exactly.
    """
    rho = torch.sqrt(squared + order**2)
    x = rho.reciprocal()
    total, first, second = _debye_sums(order, x)
    slope = first / total
    if order >= _UNIFORM_FROM:
        start, _, _ = _debye_sums(order, torch.full_like(x, 1 / order))
        excess = squared / (rho + order)  # rho - order
        value = (
            excess
            - order * torch.log1p(excess / (2 * order))
            - torch.log1p(excess / order) / 2
            + torch.log1p((total - start) / start)
        )
    else:
        constant = (
            math.lgamma(order + 1) + order * math.log(2) - math.log(2 * math.pi) / 2
        )
        value = (
            (rho - order * torch.log(order + rho) + constant)
            - torch.log(rho) / 2
            + torch.log(total)
        )
    inverse = (rho + order).reciprocal()
    return RadialCumulant(
        value,
        inverse - x.square() / 2 + slope,
        x.pow(4) - x * inverse.square() + second / total - slope.square(),
    )


def _debye_sums(order: float, x: Tensor) -> RadialCumulant:
    r"""Return $S$, $DS$ and $D^2S$ at $x = 1/\rho$, from $D x^m = -m x^{m+2}$."""
    coefficients = x.new_tensor(_debye_coefficients())  # k i
    powers = torch.arange(_ORDERS + 1, dtype=x.dtype, device=x.device)
    m = powers.unsqueeze(-1) + 2 * powers
    w = x.square()
    terms = (
        coefficients * _powers(x).unsqueeze(-1) * _powers(order**2 * w).unsqueeze(-2)
    )
    total, first, second = (
        (terms * factor).sum((-2, -1))
        for factor in (torch.ones_like(m), m, m * (m + 2))
    )
    return RadialCumulant(total, -w * first, w.square() * second)


def _powers(y: Tensor) -> Tensor:
    """Return the powers of `y` from zero on, the exponent last."""
    factors = [y] * _ORDERS
    powers = itertools.accumulate(factors, torch.mul, initial=torch.ones_like(y))
    return torch.stack(list(powers), dim=-1)


@functools.cache
def _debye_coefficients() -> tuple[tuple[float, ...], ...]:
    r"""Return the $c_{k,i}$ of Debye's $u_k(p) = \sum_i c_{k,i} p^{k + 2i}$.

    $u_{k+1} = \frac12 p^2 (1-p^2) u_k' + \frac18 \int_0^p (1 - 5s^2) u_k(s)\,ds$
    [DLMF, 10.41.9], in exact fractions.
    """
    row = [Fraction(1)] + [Fraction(0)] * _ORDERS
    rows = [row]
    for k in range(_ORDERS):
        following = [Fraction(0)] * (_ORDERS + 1)
        for i in range(k + 1):
            m = k + 2 * i
            following[i] += row[i] * (Fraction(m, 2) + Fraction(1, 8 * (m + 1)))
            following[i + 1] -= row[i] * (Fraction(m, 2) + Fraction(5, 8 * (m + 3)))
        row = following
        rows.append(row)
    return tuple(tuple(map(float, row)) for row in rows)
