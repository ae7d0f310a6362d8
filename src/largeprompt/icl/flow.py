r"""Gradient flow and gradient descent of a risk, in any parameters of the head.

$$ \dot\theta = -\lambda\, \nabla_\theta R(U(\theta), v(\theta)), $$

$\lambda$ the factor of the loss, 1 or 1/2. Flows are stiff (the Hessian's eigenvalues
span many decades), so an implicit solver follows them, with the Hessian at hand.
"""

import dataclasses
from collections.abc import Sequence
from typing import final

import numpy as np
import scipy.integrate
import torch

from largeprompt.icl.parameters import Merged, Parameters
from largeprompt.icl.risk import Array, Risk, merge, unmerge

PROBE = 1e-6  # step of the differences behind a Hessian


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Trajectory:
    """Parameters along a flow or a descent.

    Attributes:
        times: Where it was recorded; a descent of step h is at h times its steps.
        parameters: The parameters there.
        merged: Their merged form, one row each, see `merge`.
        evaluations: How many gradients were taken.
    """

    times: Array
    parameters: tuple[Parameters, ...]
    merged: Array
    evaluations: int

    @property
    def flat(self) -> Array:
        """The parameters as vectors, one row each."""
        return np.stack([point.flat().numpy() for point in self.parameters])

    def risks(self, risk: Risk) -> Array:
        """Return a risk along the trajectory, not necessarily the one it descends."""
        return np.array([risk.value(point) for point in self.merged])


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Loss:
    r"""A risk as a function of parameters.

    Attributes:
        risk: The risk of the merged parameters.
        like: Parameters whose type and shapes all others share.
        logit_factor: What multiplies $U$, such as $1/\sqrt{d+1}$.
        loss_factor: What multiplies the risk: 1, or 1/2 as in the paper's theory.
    """

    risk: Risk
    like: Parameters
    logit_factor: float = 1.0
    loss_factor: float = 1.0

    def merged(self, flat: Array) -> Array:
        """Return the merged parameters."""
        head = self.point(flat).merge(self.logit_factor)
        return merge(head.bilinear.numpy(), head.value.numpy())

    def gradient(self, flat: Array) -> Array:
        """Return the gradient of the loss."""
        slope = self.loss_factor * self.risk.gradient(self.merged(flat))
        return self._pull_back(flat, slope)

    def hessian(self, flat: Array) -> Array:
        r"""Return the Hessian $J^\top H J + \sum_k g_k \nabla^2 m_k$ of the loss.

        $J$ is the Jacobian of $\theta \mapsto m = (U, v)$, $g$ and $H$ gradient and
        Hessian in $m$, the latter by differences. The map is at most quadratic, so
        that `pull_back` is affine in $\theta$ and its differences are exact.
        """
        m = self.merged(flat)
        eye = np.eye(len(m))
        slope = self.loss_factor * self.risk.gradient(m)
        near = np.array([self.risk.gradient(m + PROBE * row) for row in eye])
        inner = (self.loss_factor * near - slope) / PROBE
        jacobian = np.array([self._pull_back(flat, row) for row in eye])
        origin = self._pull_back(np.zeros_like(flat), slope)
        bend = [self._pull_back(row, slope) - origin for row in np.eye(len(flat))]
        total = jacobian.T @ inner @ jacobian + np.array(bend)
        return (total + total.T) / 2

    def point(self, flat: Array) -> Parameters:
        """Return parameters from their vector."""
        return self.like.unflat(torch.from_numpy(flat))

    def _pull_back(self, flat: Array, slope: Array) -> Array:
        bilinear, value = unmerge(slope, self.risk.dim)
        head = Merged(torch.from_numpy(bilinear), torch.from_numpy(value))
        return self.point(flat).pull_back(head, self.logit_factor).flat().numpy()


def gradient_flow(
    loss: Loss, times: Sequence[float], *, accuracy: float = 1e-6
) -> Trajectory:
    """Follow the gradient flow of a loss from `loss.like`, and record it at `times`.

    Args:
        loss: The loss and, in `like`, the start.
        times: Increasing, from 0 or later; the flow starts at 0.
        accuracy: Relative error of a step of the solver; absolute, a hundredth of it.

    Raises:
        ValueError: `times` are not increasing from 0 or later.
        ArithmeticError: The solver gave up: the flow leaves every bound.
    """
    at = np.asarray(times, dtype=float)
    if len(at) == 0 or at[0] < 0 or (np.diff(at) <= 0).any():
        raise ValueError(f"times must increase, from 0 or later; got {list(times)}")
    solution = scipy.integrate.solve_ivp(
        lambda _, flat: -loss.gradient(flat),
        (0.0, max(at[-1], np.finfo(float).tiny)),
        loss.like.flat().numpy(),
        method="BDF",
        t_eval=at,
        jac=lambda _, flat: -loss.hessian(flat),
        rtol=accuracy,
        atol=accuracy / 100,
    )
    if not solution.success:
        raise ArithmeticError(f"the flow could not be followed: {solution.message}")
    probes = 1 + len(loss.merged(solution.y[:, 0]))
    return _recorded(loss, at, solution.y.T, solution.nfev + probes * solution.njev)


def gradient_descent(
    loss: Loss, *, step: float, steps: int, every: int = 1
) -> Trajectory:
    """Take gradient steps from `loss.like`, and record the start and each `every`-th.

    Raises:
        ValueError: `step` is not above 0, or `steps` or `every` is below 1.
    """
    if not step > 0 or steps < 1 or every < 1:
        raise ValueError(
            "step must be above 0, steps and every at least 1; "
            f"got {step}, {steps} and {every}"
        )
    flat = loss.like.flat().numpy()
    kept = [flat]
    for k in range(1, steps + 1):
        flat = flat - step * loss.gradient(flat)
        if k % every == 0:
            kept.append(flat)
    times = step * every * np.arange(len(kept), dtype=np.float64)
    return _recorded(loss, times, np.stack(kept), steps)


def _recorded(loss: Loss, times: Array, flats: Array, evaluations: int) -> Trajectory:
    return Trajectory(
        times=times,
        parameters=tuple(loss.point(np.ascontiguousarray(flat)) for flat in flats),
        merged=np.stack([loss.merged(np.ascontiguousarray(flat)) for flat in flats]),
        evaluations=evaluations,
    )
