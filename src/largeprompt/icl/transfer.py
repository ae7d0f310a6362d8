r"""What the infinite-prompt limit tells a finite-prompt training run: its step size.

In the limit the risk is a polynomial in $(U, v)$, so that the flow from a run's own
initial parameters, the minimum it ends in and the curvature there cost no samples. The
step $2/(\lambda_{\min} + \lambda_{\max})$ is the best constant one for a quadratic with
that curvature. The minimum is not isolated ($U \to cU$, $v \to v/c$ and more, in the
parametrisation with four matrices), so $\lambda_{\min}$ is the smallest eigenvalue that
is not zero. Derived in docs/theory.md, section 12.
"""

import dataclasses
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.integrate import BDF
from torch import Tensor

from largeprompt.icl.parameters import Parameters
from largeprompt.icl.polynomials import limit_risk
from largeprompt.icl.tasks import RegressionTask

Array = NDArray[np.float64]

LONGEST_TIME = 1e4
STATIONARY = 1e-6  # norm of the gradient at which a flow has ended
FLAT = 1e-5  # eigenvalues below this share of the largest are those of flat directions
EXCESS = 1e-6  # largest share of the answer's variance that a minimum leaves


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LimitCurvature:
    r"""The limit's minimum that a run heads for, and the curvature of the loss there.

    Attributes:
        endpoint: The minimum in which the flow of the limit ends.
        spectrum: The eigenvalues of the Hessian there, in increasing order.
    """

    endpoint: Parameters
    spectrum: Float[Tensor, " p"]

    @property
    def largest(self) -> float:
        r"""$\lambda_{\max}$: constant steps above $2/\lambda_{\max}$ diverge."""
        return float(self.spectrum[-1])

    @property
    def smallest(self) -> float:
        r"""$\lambda_{\min}$, over directions that are not flat."""
        return float(self.spectrum[self.spectrum > FLAT * self.spectrum[-1]][0])

    @property
    def rate(self) -> float:
        r"""$2/(\lambda_{\min} + \lambda_{\max})$, the step for `SGD`."""
        return 2 / (self.smallest + self.largest)


def limit_curvature(
    task: RegressionTask,
    initial: Parameters,
    *,
    logit_factor: float = 1.0,
    loss_factor: float = 1.0,
) -> LimitCurvature:
    """Follow the flow of the infinite-prompt loss to its minimum; measure curvature.

    Args:
        task: The law of the prompts.
        initial: Where the flow starts; its type is the parametrisation.
        logit_factor: What the logits are multiplied by.
        loss_factor: The loss over the mean square error.

    Raises:
        ValueError: The flow ends at a saddle, or has not ended at time 1e4.
    """

    def loss(flat: Float[Tensor, " p"]) -> Float[Tensor, ""]:
        head = initial.unflat(flat).merge(logit_factor)
        return loss_factor * limit_risk(task, head.bilinear, head.value)

    def velocity(_: float, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        variable = torch.from_numpy(flat).requires_grad_()
        (gradient,) = torch.autograd.grad(loss(variable), variable)
        return -gradient.numpy()

    curvature = torch.func.hessian(loss)
    solver = BDF(
        velocity,
        0.0,
        initial.flat().numpy(),
        LONGEST_TIME,
        rtol=1e-6,
        atol=1e-8,
        jac=lambda _, flat: -curvature(torch.from_numpy(flat)).numpy(),
    )
    while np.linalg.norm(velocity(solver.t, solver.y)) >= STATIONARY:
        if solver.status != "running":
            raise ValueError(
                "the limit flow from the initial parameters must end by time "
                f"{LONGEST_TIME:g}; the gradient still has norm "
                f"{np.linalg.norm(velocity(solver.t, solver.y)):.3g}"
            )
        solver.step()
    flat = torch.from_numpy(solver.y.copy())
    signal = (task.query_cov * task.task_cov).sum()
    excess = float(loss(flat)) / loss_factor - task.target_noise_variance
    if excess > EXCESS * float(signal):
        raise ValueError(
            "the limit flow from the initial parameters must end in a minimum; "
            f"it ends with an excess risk of {excess:.3g}"
        )
    return LimitCurvature(initial.unflat(flat), torch.linalg.eigvalsh(curvature(flat)))
