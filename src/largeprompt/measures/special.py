r"""Scalar functions that stay exact near zero, at infinity, and under autograd.

Each is written twice, for $|x| < 1$ and for $|x| \ge 1$, and each branch sees arguments
of its own side only, so that no derivative of any order meets 0/0 or an overflow. The
forms are derived in docs/theory.md, section 1.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

# sinh(x)/x = sum of w^k / (2k + 1)! with w = x^2; ten terms reach 1e-19 at w = 1.
_SINHC = tuple(1 / math.factorial(2 * k + 1) for k in range(10))
_SINHC_SLOPE = tuple(2 * k * _SINHC[k] for k in range(1, 10))
_SINHC_CURVATURE = tuple(2 * k * (2 * k - 1) * _SINHC[k] for k in range(1, 10))


def log_cosh(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    r"""Return $\log\cosh x$."""
    near, far, small = _sides(x)
    return torch.where(
        small,
        torch.log1p(2 * torch.sinh(near / 2).square()),
        far + torch.log1p(torch.exp(-2 * far)) - math.log(2),
    )


def sech_squared(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    r"""Return $1/\cosh^2 x = 4\sigma(2x)\sigma(-2x)$, without cancellation."""
    return 4 * torch.sigmoid(2 * x) * torch.sigmoid(-2 * x)


def log_sinhc(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    r"""Return $\log(\sinh x / x)$, zero at zero."""
    near, far, small = _sides(x)
    w = near.square()
    return torch.where(
        small,
        torch.log1p(w * _polynomial(w, _SINHC[1:])),
        far + torch.log1p(-torch.exp(-2 * far)) - torch.log(2 * far),
    )


def langevin(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    r"""Return $\coth x - 1/x$, the derivative of $\log(\sinh x / x)$."""
    near, far, small = _sides(x)
    w = near.square()
    e = torch.exp(-2 * far)
    return torch.where(
        small,
        near * _polynomial(w, _SINHC_SLOPE) / _polynomial(w, _SINHC),
        x.sign() * ((1 + e) / (1 - e) - 1 / far),
    )


def langevin_slope(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    r"""Return $1/x^2 - 1/\sinh^2 x$, the derivative of `langevin`."""
    near, far, small = _sides(x)
    w = near.square()
    value = _polynomial(w, _SINHC)
    slope = near * _polynomial(w, _SINHC_SLOPE) / value
    e = torch.exp(-2 * far)
    return torch.where(
        small,
        _polynomial(w, _SINHC_CURVATURE) / value - slope.square(),
        1 / far.square() - 4 * e / (1 - e).square(),
    )


def _sides(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return `x` where small (else 0), its size where large (else 1), and the mask."""
    small = x.abs() < 1
    return torch.where(small, x, 0), torch.where(small, 1, x).abs(), small


def _polynomial(w: Tensor, coefficients: Sequence[float]) -> Tensor:
    """Evaluate a polynomial by Horner's rule, lowest coefficient first."""
    value = torch.full_like(w, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = value * w + coefficient
    return value
