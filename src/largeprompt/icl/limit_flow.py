r"""The flow at infinite prompt length in the paper's block parameters.

With $U = \mathrm{diag}(A, 0)$ and $v = (0, b)$, tokens and query of covariance $S$, the
task $w \sim N(0, I)$ and no noise on the answer, half the limit risk is

$$ R(A, b) = \tfrac12 \mathrm{tr}\big((b S A - I)\, S\, (b S A - I)^\top\big) . $$

In the eigenbasis of $S$, for $A$ diagonal there, $\dot a_i = b s_i^2 (1 - b s_i a_i)$
and $\dot b = \sum_i s_i^2 a_i (1 - b s_i a_i)$. $\|A\|_F^2 - b^2$ is conserved.

Source: Boursier and Boyer (2026), section 5; docs/theory.md, section 13.3.
"""

import dataclasses
from collections.abc import Sequence
from typing import final

import numpy as np
import scipy.integrate
import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.icl.parameters import Merged, Parameters
from largeprompt.icl.risk import Array
from largeprompt.icl.tasks import RegressionTask, check_covariance


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Blocks(Parameters):
    r"""The paper's blocks: $U = \mathrm{diag}(A, 0)$ and $v = (0, b)$.

    Attributes:
        form: $A$.
        gain: $b$, as a vector of one entry.
    """

    form: Float[Tensor, "d d"]
    gain: Float[Tensor, " 1"]

    def __post_init__(self) -> None:
        """Check the shapes.

        Raises:
            ValueError: They are not (d, d) and (1,).
        """
        form, gain = tuple(self.form.shape), tuple(self.gain.shape)
        if len(form) != 2 or form[0] != form[1] or gain != (1,):
            raise ValueError(
                f"form and gain must have shapes (d, d) and (1,); got {form} and {gain}"
            )

    @override
    def merge(self, logit_factor: float) -> Merged:
        bilinear = torch.nn.functional.pad(logit_factor * self.form, (0, 1, 0, 1))
        return Merged(bilinear, torch.nn.functional.pad(self.gain, (len(self.form), 0)))

    @override
    def pull_back(self, gradient: Merged, logit_factor: float) -> "Blocks":
        form = logit_factor * gradient.bilinear[:-1, :-1]
        return Blocks(form, gradient.value[-1:])

    @property
    def imbalance(self) -> float:
        r"""$\|A\|_F^2 - b^2$, conserved in the limit and by linear heads."""
        return float(self.form.square().sum() - self.gain.square().sum())


def balanced(form: Float[Tensor, "d d"]) -> Blocks:
    r"""Return the start with this $A$ and $b = \|A\|_F$: the paper's initialisation.

    The flow converges to `endpoint` from every such start with $A$ positive
    semidefinite and not zero.
    """
    return Blocks(form, torch.linalg.matrix_norm(form).reshape(1))


def endpoint(cov: Float[Tensor, "d d"]) -> Blocks:
    r"""Return where balanced starts lead.

    $b = \mathrm{tr}(S^{-2})^{1/4}$ and $A = S^{-1}/b$. There $b S A = I$: the limit
    predicts $w \cdot x_q$ without error.
    """
    check_covariance("cov", cov, cov.shape)
    inverse = torch.linalg.inv(cov)
    gain = inverse.square().sum() ** 0.25
    return Blocks(inverse / gain, gain.reshape(1))


def theory_task(cov: Float[Tensor, "d d"]) -> RegressionTask:
    """Return the task of the theorem: no noise, equal covariances, $W = I$."""
    eye = torch.eye(len(cov), dtype=cov.dtype)
    return RegressionTask(cov, cov, eye, noise_variance=0.0, target_noise=False)


def eigenvalue_flow(
    spectrum: Array,
    start: Array,
    gain: float,
    times: Sequence[float],
    *,
    accuracy: float = 1e-10,
) -> tuple[Array, Array]:
    r"""Solve the flow of the limit in the eigenbasis of $S$.

    Args:
        spectrum: $s_i > 0$, the eigenvalues of $S$.
        start: $a_i(0)$, for an $A(0)$ that is diagonal in that basis.
        gain: $b(0)$.
        times: Where to return it; increasing, from 0 or later.
        accuracy: Relative error of a step.

    Returns:
        $a_i$, of shape (times, d), and $b$, of shape (times,).
    """

    def field(_: float, state: Array) -> Array:
        a, b = state[:-1], state[-1]
        pull = spectrum**2 * (1 - b * spectrum * a)
        return np.append(b * pull, a @ pull)

    solution = scipy.integrate.solve_ivp(
        field,
        (0.0, times[-1]),
        np.append(start, gain),
        method="LSODA",
        t_eval=times,
        rtol=accuracy,
        atol=accuracy / 100,
    )
    assert solution.success, "the flow of the limit is bounded"
    return solution.y[:-1].T, solution.y[-1]
