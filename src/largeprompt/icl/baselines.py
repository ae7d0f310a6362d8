r"""What predictors that are no heads achieve: ridge, Bayes, gradient steps.

Each is linear in the labels, $\hat w = B y$ for some $B(X)$, so given the inputs the
average over task, noise and query is exact:

$$ \sigma_t^2 + \mathrm{tr}\big(S_q [(I - BX) W (I - BX)^\top
   + \sigma^2 B B^\top]\big) . $$

Only the inputs are drawn, and in the case of one gradient step not even they.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.estimates import RiskEstimate, exact, from_draws
from largeprompt.icl.linear import linear_risk, reading_head
from largeprompt.icl.tasks import RegressionTask

BLOCK = 2**21  # numbers drawn at once


def ridge_risk(
    task: RegressionTask,
    n: int,
    penalty: float,
    draws: int,
    generator: torch.Generator,
    confidence: float = 0.99,
) -> RiskEstimate:
    r"""Return the risk of $\hat w = (X^\top X + \lambda I)^{-1} X^\top y$.

    Args:
        task: The law of the prompts.
        n: The prompt length.
        penalty: $\lambda > 0$; $d \sigma^2$ is Bayes when $W = I/d$.
        draws: How many prompts' inputs to draw.
        generator: The source of the draws.
        confidence: Of the interval.

    Raises:
        ValueError: The penalty is not above 0.
    """
    if not 0 < penalty < math.inf:
        raise ValueError(f"penalty must be a finite number above 0; got {penalty}")

    def error(gram: Tensor) -> Tensor:
        values, axes = torch.linalg.eigh(gram)
        shrink = 1 / (values + penalty)
        return _error(task, axes, penalty * shrink, values * shrink**2)

    return _averaged(task, n, error, draws, generator, confidence)


def bayes_risk(
    task: RegressionTask,
    n: int,
    draws: int,
    generator: torch.Generator,
    confidence: float = 0.99,
) -> RiskEstimate:
    r"""Return the least risk that any predictor has.

    The posterior of the task is Gaussian whatever the law of the inputs, of covariance
    $W^{1/2} (I + W^{1/2} X^\top X W^{1/2}/\sigma^2)^{-1} W^{1/2}$; without noise it
    lives where the prompt leaves the task open.

    Args:
        task: The law of the prompts.
        n: The prompt length.
        draws: How many prompts' inputs to draw.
        generator: The source of the draws.
        confidence: Of the interval.
    """
    root = torch.linalg.cholesky(task.task_cov)

    def error(gram: Tensor) -> Tensor:
        values, axes = torch.linalg.eigh(root.mT @ gram @ root)
        nothing = values <= 1e-12 * values[..., -1:]
        left = task.noise_variance / (task.noise_variance + values.clamp(min=0))
        left = torch.where(nothing, 1.0, left)
        seen = root @ axes
        weights = (seen * (task.query_cov @ seen)).sum(-2)
        return (left * weights).sum(-1) + task.target_noise_variance

    return _averaged(task, n, error, draws, generator, confidence)


def one_step_risk(task: RegressionTask, n: float, step: float) -> RiskEstimate:
    r"""Return the exact risk of one gradient step of size $\eta$ from zero.

    $\hat w = \frac{\eta}{n} X^\top y$ is linear attention with $A = \eta I$. For
    isotropic inputs and $W = I/d$ the risk is
    $\sigma_t^2 + 1 - 2\eta + \eta^2 (1 + (d + 1)/n + d\sigma^2/n)$.
    """
    eye = torch.eye(task.dim, dtype=task.token_cov.dtype)
    return exact(linear_risk(task, n, *reading_head(step * eye)))


def gradient_descent_risk(
    task: RegressionTask,
    n: int,
    step: float,
    steps: int,
    draws: int,
    generator: torch.Generator,
    confidence: float = 0.99,
) -> RiskEstimate:
    r"""Return the risk of gradient descent on $\frac{1}{2n}\|X w - y\|^2$ from zero.

    Exact for one step; otherwise the inputs are drawn.

    Args:
        task: The law of the prompts.
        n: The prompt length.
        step: The step size $\eta$.
        steps: How many steps, at least 0.
        draws: How many prompts' inputs to draw.
        generator: The source of the draws.
        confidence: Of the interval.

    Raises:
        ValueError: `steps` is below 0.
    """
    if steps < 0:
        raise ValueError(f"steps must be at least 0; got {steps}")
    if steps == 1:
        return one_step_risk(task, n, step)

    def error(gram: Tensor) -> Tensor:
        values, axes = torch.linalg.eigh(gram / n)
        factor = 1 - step * values
        remaining = factor**steps
        powers = torch.zeros_like(values)  # sum of factor^j, j < steps
        for _ in range(steps):
            powers = 1 + factor * powers
        return _error(task, axes, remaining, (step * powers) ** 2 * values / n)

    return _averaged(task, n, error, draws, generator, confidence)


def _error(
    task: RegressionTask,
    axes: Float[Tensor, "b d d"],
    bias: Float[Tensor, "b d"],
    noise: Float[Tensor, "b d"],
) -> Float[Tensor, " b"]:
    r"""Return the error of a spectral estimator, given the inputs.

    On `axes`, $I - BX$ has the eigenvalues `bias` and $B B^\top$ those in `noise`.
    """
    w = axes.mT @ task.task_cov @ axes
    query = axes.mT @ task.query_cov @ axes
    biased = (bias.unsqueeze(-1) * w * bias.unsqueeze(-2) * query).sum((-1, -2))
    noisy = (noise * query.diagonal(dim1=-2, dim2=-1)).sum(-1)
    return biased + task.noise_variance * noisy + task.target_noise_variance


@torch.no_grad()
def _averaged(
    task: RegressionTask,
    n: int,
    error: Callable[[Tensor], Tensor],
    draws: int,
    generator: torch.Generator,
    confidence: float,
) -> RiskEstimate:
    r"""Return the average of `error`, a function of $X^\top X$, over drawn inputs."""
    if n < 1:
        raise ValueError(f"n must be at least 1; got {n}")
    rows = max(1, BLOCK // (n * task.dim))
    blocks = []
    for start in range(0, draws, rows):
        x = task.inputs(task.token_cov, (min(rows, draws - start), n), generator)
        blocks.append(error(x.mT @ x))
    return from_draws(torch.cat(blocks), confidence)
