r"""Linear attention over a finite prompt: its population risk and its optimum, exactly.

Linear attention predicts $v^\top \hat G U z_q$, $\hat G$ the empirical second moment of
the tokens. Its square has a closed-form mean for any tokens whose fourth moments are
known (docs/theory.md, section 11.2):

$$ E[(v^\top \hat G u)^2 \mid w, x_q] = a^2 + \frac1n \Big[a^2
   + v^\top G_w v\; u^\top G_w u + \kappa_4 \sum_k p_k^2 q_k^2\Big], $$

with $p$ and $q$ the coordinates of $v$ and $u$ along the independent coordinates of an
input and $\kappa_4$ their excess kurtosis (0 when they are normal).
"""

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.conventions import Conventions
from largeprompt.icl.polynomials import (
    check_head,
    limit_prediction,
    logit_quadratic,
    value_quadratic,
)
from largeprompt.icl.quadratics import Quadratic, mean_squared_cubic
from largeprompt.icl.tasks import RegressionTask, TokenLaw


def linear_risk(
    task: RegressionTask,
    n: float,
    bilinear: Float[Tensor, "d+1 d+1"],
    value: Float[Tensor, " d+1"],
    conventions: Conventions | None = None,
) -> Float[Tensor, ""]:
    r"""Return the mean square error of linear attention, target noise included.

    Exact and differentiable. The length of the prompts in training is nowhere: give
    the test length, and the task of the test.

    Args:
        task: The law of the prompts, with inputs of any token law.
        n: Prompt length from 1 to infinity.
        bilinear: $U$ with every scale folded in.
        value: $v$.
        conventions: The divisor, and whether the query is one of the tokens.

    Raises:
        ValueError: `n` is below 1, the shapes do not fit, or the query is among tokens
            that are not Gaussian.

    Source: derived in docs/theory.md, section 11.2.
    """
    check_head(task, bilinear, value)
    if not n >= 1:
        raise ValueError(f"n must be at least 1; got {n}")
    rules = Conventions() if conventions is None else conventions
    share = rules.normaliser.share(n)
    limit = limit_prediction(task, bilinear, value).scaled(share)
    risk = limit.error().mean_square() + task.target_noise_variance
    if rules.query_in_prompt:
        risk = risk + _own_token(task, share / n, bilinear, value, limit.mean())
    w = task.task_cov
    fluctuation = limit.mean_square() + share**2 * (
        value_quadratic(task, value, value).mean_product(
            logit_quadratic(task, bilinear, bilinear), w
        )
        + _fourth_cumulant(task, bilinear, value)
    )
    return risk + fluctuation / n


def linear_optimum(task: RegressionTask, n: float) -> Float[Tensor, "d d"]:
    r"""Return the best $A$ of the prediction $x_q^\top A^\top \frac1n\sum_i y_i x_i$.

    $$ A = \Big[\big(1 + \tfrac1n\big) W S + \frac{\mathrm{tr}(W S) + \sigma^2}{n} I
       \Big]^{-1} W $$

    for Gaussian tokens; others add $\frac{\kappa_4}{n} C \,\mathrm{diag}(C^\top W C)
    \,C^\top$ to the second moment of $\frac1n\sum y_i x_i$ that is inverted. The
    covariance of the query does not enter.

    Source: docs/theory.md, section 11.2; Zhang, Frei and Bartlett (2024) for $W = I$
    without noise.
    """
    if not n >= 1:
        raise ValueError(f"n must be at least 1; got {n}")
    cov, w = task.token_cov, task.task_cov
    explained = cov @ w @ cov
    power = (cov * w).sum() + task.noise_variance
    root = torch.linalg.cholesky(cov)
    kurtosis = excess_kurtosis(task.token_law)
    other = kurtosis * (root * (root.mT @ w @ root).diagonal()) @ root.mT
    return torch.linalg.solve(
        explained + (explained + power * cov + other) / n, cov @ w
    )


def principal_optimum(
    task: RegressionTask, n: float, components: int
) -> Float[Tensor, "d d"]:
    r"""Return the optimum restricted to the leading principal components of the inputs.

    The plateaus of training with separate key and query matrices; meaningful when $W$
    commutes with $S$.

    Source: Zhang, Singh, Latham and Saxe (2025).
    """
    if not 0 <= components <= task.dim:
        raise ValueError(f"components must be from 0 to {task.dim}; got {components}")
    axes = torch.linalg.eigh(task.token_cov).eigenvectors[:, task.dim - components :]
    return axes @ (axes.mT @ linear_optimum(task, n))


def reading_head(form: Float[Tensor, "d d"]) -> tuple[Tensor, Tensor]:
    r"""Return $U$ and $v$ of a head with logits $x_i^\top A x_q$ and values $y_i$."""
    bilinear = torch.nn.functional.pad(form, (0, 1, 0, 1))
    value = torch.zeros(len(form) + 1, dtype=form.dtype)
    value[-1] = 1.0
    return bilinear, value


def excess_kurtosis(law: TokenLaw) -> float:
    r"""Return $\kappa_4 = E g^4 - 3$ of a coordinate."""
    match law:
        case TokenLaw.GAUSSIAN:
            return 0.0
        case TokenLaw.RADEMACHER:
            return -2.0
        case TokenLaw.UNIFORM:
            return -1.2


def _fourth_cumulant(
    task: RegressionTask, bilinear: Tensor, value: Tensor
) -> Tensor | float:
    r"""Return $\kappa_4 \sum_k E[p_k^2 q_k^2]$, zero for Gaussian tokens."""
    kurtosis = excess_kurtosis(task.token_law)
    if kurtosis == 0.0:
        return 0.0
    reads = bilinear[:, :-1]
    moment = reads @ task.query_cov @ reads.mT
    total = torch.zeros((), dtype=value.dtype)
    for column in torch.linalg.cholesky(task.token_cov).unbind(-1):
        outer = torch.outer(column, column)
        along, read = column @ value[:-1], value[-1] * column
        p = Quadratic(along**2, 2 * along * read, torch.outer(read, read))
        q = Quadratic(
            column @ moment[:-1, :-1] @ column,
            2 * (column @ moment[:-1, -1]) * column,
            moment[-1, -1] * outer,
        )
        total = total + p.mean_product(q, task.task_cov)
    return kurtosis * total


def _own_token(
    task: RegressionTask, weight: float, bilinear: Tensor, value: Tensor, mean: Tensor
) -> Tensor:
    r"""Return what the query's own token adds: $E t^2 + 2 E[t\, x_q \cdot E_w m]$.

    $t = (v_x \cdot x_q)(x_q^\top A x_q)$ times its weight.
    """
    if task.token_law is not TokenLaw.GAUSSIAN:
        raise ValueError(
            "a query among the tokens needs Gaussian inputs; "
            f"got the token law {task.token_law.value!r}"
        )
    cov, form, read = task.query_cov, bilinear[:-1, :-1], value[:-1]
    crossed = read @ cov @ mean * (form * cov).sum()
    crossed = crossed + read @ cov @ (form + form.mT) @ cov @ mean
    return weight**2 * mean_squared_cubic(form, read, cov) + 2 * weight * crossed
