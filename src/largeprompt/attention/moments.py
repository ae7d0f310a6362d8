r"""Second and fourth moments of a tilted measure, around any centre.

What the bounds on a finite prompt ask of a measure. All of them follow from
`tilted_mean` and `tilted_cov`: third and fourth cumulants are derivatives of the
latter. Outside the domain every moment is infinite.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.measures import Measure


def second_moment(
    measure: Measure,
    tilt: Float[Tensor, " d"],
    center: Float[Tensor, " d"],
    form: Float[Tensor, "d d"],
) -> float:
    r"""Return $E_t[y^\top A y]$ for $y = x - c$.

    Args:
        measure: The law of $x$ before tilting.
        tilt: The tilt $t$.
        center: The centre $c$.
        form: The symmetric matrix $A$.
    """
    if not has_moments(measure, tilt):
        return math.inf
    shift = measure.tilted_mean(tilt) - center
    return float((form * measure.tilted_cov(tilt)).sum() + shift @ form @ shift)


def fourth_moment(
    measure: Measure,
    tilt: Float[Tensor, " d"],
    center: Float[Tensor, " d"],
    first: Float[Tensor, "d d"],
    second: Float[Tensor, "d d"],
) -> float:
    r"""Return $E_t[(y^\top A y)(y^\top B y)]$ for $y = x - c$.

    With $C$ the tilted covariance, $b$ the tilted mean of $y$ and
    $F_A(t) = \mathrm{tr}(A C)$, it is

    $$ (F_A + b^\top A b)(F_B + b^\top B b) + 2\,\mathrm{tr}(A C B C)
       + 4 b^\top A C B b + \mathrm{tr}(B \nabla^2 F_A)
       + 2 \nabla F_A \cdot B b + 2 \nabla F_B \cdot A b . $$

    Derived in docs/theory.md, equation (9.14).

    Args:
        measure: The law of $x$ before tilting.
        tilt: The tilt $t$.
        center: The centre $c$.
        first: The symmetric matrix $A$.
        second: The symmetric matrix $B$.
    """
    if not has_moments(measure, tilt):
        return math.inf

    def trace_of(form: Tensor, at: Tensor) -> Tensor:
        return (form * measure.tilted_cov(at)).sum()

    cov = measure.tilted_cov(tilt)
    shift = measure.tilted_mean(tilt) - center
    slope_first = torch.func.jacrev(lambda at: trace_of(first, at))(tilt)
    slope_second = torch.func.jacrev(lambda at: trace_of(second, at))(tilt)
    curvature = torch.func.hessian(lambda at: trace_of(first, at))(tilt)
    means = [trace_of(form, tilt) + shift @ form @ shift for form in (first, second)]
    gaussian = (
        means[0] * means[1]
        + 2 * torch.trace(first @ cov @ second @ cov)
        + 4 * shift @ first @ cov @ second @ shift
    )
    beyond = (
        (second * curvature).sum()
        + 2 * slope_first @ second @ shift
        + 2 * slope_second @ first @ shift
    )
    return float(gaussian + beyond)


def has_moments(measure: Measure, tilt: Float[Tensor, " d"]) -> bool:
    """Return whether the tilted law exists and has a covariance."""
    inside = measure.log_mgf(tilt).isfinite()
    return bool(inside and measure.tilted_cov(tilt).isfinite().all())
