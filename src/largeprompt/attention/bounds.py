"""Proven bounds for a head: from a measure and a query to the scalars of a theorem."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention.head import Head
from largeprompt.attention.moments import fourth_moment, has_moments, second_moment
from largeprompt.attention.value_moments import value_moments
from largeprompt.laws.bounds import (
    BilinearGradientBound,
    LargestTokenCeiling,
    NestedDriftBound,
    OutputBound,
    QueryAveragedBound,
)
from largeprompt.measures import Measure, Prompt


@torch.no_grad()
def output_bound(head: Head, measure: Measure, z: Float[Tensor, " e"]) -> OutputBound:
    r"""Bound $\|T_n(z) - T(z)\|$ for a prompt of independent draws.

    Args:
        head: The head.
        measure: The law of the tokens.
        z: The token that asks.

    Raises:
        ValueError: The tilt $U z$ is outside the domain of $\Lambda$: no limit exists.
    """
    u = _tilt_in_domain(head, measure, z)
    return _output_bound(measure, u, head.value.mT @ head.value)


@torch.no_grad()
def value_gradient_bound(
    head: Head, measure: Measure, z: Float[Tensor, " e"]
) -> OutputBound:
    r"""Bound $\|\nabla_V T_n(z) - \nabla_V T(z)\|$ in the Frobenius norm.

    The gradient is $\delta_{ab} m_i$ with $m$ the weighted mean of the tokens, so its
    error is $\sqrt v$ times that of the head with $V = I$.

    Args:
        head: The head, with $v$ rows in its value matrix.
        measure: The law of the tokens.
        z: The token that asks.

    Raises:
        ValueError: The tilt $U z$ is outside the domain of $\Lambda$: no limit exists.
    """
    u = _tilt_in_domain(head, measure, z)
    return _output_bound(measure, u, head.value.shape[0] * _identity(head))


@torch.no_grad()
def bilinear_gradient_bound(
    head: Head, measure: Measure, z: Float[Tensor, " e"]
) -> BilinearGradientBound:
    r"""Bound $\|\nabla_U T_n(z) - \nabla_U T(z)\|$ in the Frobenius norm.

    Args:
        head: The head.
        measure: The law of the tokens; `tilted_cov` twice differentiable.
        z: The token that asks.

    Raises:
        ValueError: The tilt $U z$ is outside the domain of $\Lambda$: no limit exists.
    """
    u = _tilt_in_domain(head, measure, z)
    t, limit = measure.tilted_mean(u), measure.tilted_cov(u)
    value, identity = head.value.mT @ head.value, _identity(head)
    rest = torch.zeros_like(u)
    limit_squared = float((head.value @ limit).square().sum())
    fluctuation = math.inf
    if has_moments(measure, 2 * u):
        cross = (value @ limit + limit @ value) / 2
        fluctuation = (
            fourth_moment(measure, 2 * u, t, value, identity)
            - 2 * second_moment(measure, 2 * u, t, cross)
            + limit_squared
        )
    kappa = _log_moment(measure, u, 2)
    return BilinearGradientBound(
        kappa=kappa,
        query_norm=float(z.norm()),
        fluctuation=_times_exp(fluctuation, kappa),
        tau_squared_value=_without_rounding(second_moment(measure, 2 * u, t, value)),
        tau_squared=_without_rounding(second_moment(measure, 2 * u, t, identity)),
        fourth_weighted=_times_exp(
            fourth_moment(measure, 4 * u, t, value, identity),
            _log_moment(measure, u, 4),
        ),
        fourth=_without_rounding(fourth_moment(measure, rest, t, value, identity)),
        omega_squared_value=_without_rounding(second_moment(measure, rest, t, value)),
        omega_squared=_without_rounding(second_moment(measure, rest, t, identity)),
        limit_squared=limit_squared,
    )


@torch.no_grad()
def nested_drift_bound(
    head: Head, measure: Measure, z: Float[Tensor, " e"], added: int
) -> NestedDriftBound:
    r"""Bound $\|T_{n + m}(z) - T_n(z)\|$ for a prompt that grows by $m$ tokens.

    Args:
        head: The head.
        measure: The law of the tokens.
        z: The token that asks.
        added: The number of tokens $m \ge 0$.

    Raises:
        ValueError: The tilt $U z$ is outside the domain of $\Lambda$: no limit exists.
    """
    u = _tilt_in_domain(head, measure, z)
    bound = _output_bound(measure, u, head.value.mT @ head.value)
    shift = math.inf
    if bound.tau_squared < math.inf:
        drift = measure.tilted_mean(2 * u) - measure.tilted_mean(u)
        shift = float((head.value @ drift).square().sum())
    return NestedDriftBound(
        kappa=bound.kappa,
        tau_squared=bound.tau_squared,
        omega_squared=bound.omega_squared,
        shift_squared=shift,
        added=added,
    )


@torch.no_grad()
def query_averaged_bound(
    head: Head, measure: Measure, queries: Prompt
) -> QueryAveragedBound:
    r"""Bound $E\|T_n(z) - T(z)\|^2$ over tokens and a random query $z$.

    Args:
        head: The head.
        measure: The law of the tokens.
        queries: The law of $z$, by its atoms: a quadrature or draws of another law.

    Raises:
        ValueError: The tilt of a query is outside the domain of $\Lambda$.
    """
    value = head.value.mT @ head.value
    tilts = [_tilt_in_domain(head, measure, z) for z in queries.atoms]
    return QueryAveragedBound(
        probabilities=tuple(queries.log_weights.exp().tolist()),
        bounds=tuple(_output_bound(measure, u, value) for u in tilts),
        ceilings=tuple(
            LargestTokenCeiling(
                value_moments(measure, head.value, measure.tilted_mean(u))
            )
            for u in tilts
        ),
    )


def _output_bound(
    measure: Measure, u: Float[Tensor, " d"], form: Float[Tensor, "d d"]
) -> OutputBound:
    t = measure.tilted_mean(u)
    return OutputBound(
        kappa=_log_moment(measure, u, 2),
        tau_squared=_without_rounding(second_moment(measure, 2 * u, t, form)),
        omega_squared=_without_rounding(
            second_moment(measure, torch.zeros_like(u), t, form)
        ),
    )


def _log_moment(measure: Measure, u: Float[Tensor, " d"], order: int) -> float:
    r"""Return $\log E W^k = \Lambda(k u) - k \Lambda(u)$, at least 0 by convexity."""
    gap = measure.log_mgf(order * u) - order * measure.log_mgf(u)
    return _without_rounding(float(gap))


def _without_rounding(value: float) -> float:
    """Return a number that is at least 0 but for rounding; a NaN stays one."""
    return 0.0 if value < 0 else value


def _tilt_in_domain(
    head: Head, measure: Measure, z: Float[Tensor, " e"]
) -> Float[Tensor, " d"]:
    u = head.tilt(z)
    if measure.dim != u.shape[-1]:
        raise ValueError(
            "measure and head must share the tokens' dimension; "
            f"got {measure.dim} and {u.shape[-1]}"
        )
    if not (cumulant := measure.log_mgf(u)).isfinite():
        raise ValueError(
            "the tilt U z must lie in the domain of log_mgf; "
            f"got log_mgf = {float(cumulant)}"
        )
    return u


def _identity(head: Head) -> Float[Tensor, "d d"]:
    value = head.value
    return torch.eye(value.shape[1], dtype=value.dtype, device=value.device)


def _times_exp(value: float, exponent: float) -> float:
    """Return `value` times the exponential, infinite where a float cannot hold it."""
    if value <= 0:
        return 0.0
    log = math.log(value) + exponent
    return math.exp(log) if log < 700 else math.inf
