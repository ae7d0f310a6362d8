r"""What attention predicts from an infinite prompt, as a polynomial in the task vector.

Given $w$ a token $(x, y)$ has covariance $G_w$, so the limit of the prediction is
$a = v^\top G_w U (x_q, 0) = x_q \cdot m(w)$ with

$$ m(w) = \underbrace{A^\top S v_x + \sigma^2 v_y b}_{m_0}
   + \underbrace{(b\, v_x^\top S + v_y A^\top S)}_{M_1} w
   + \underbrace{v_y b}_{m_2}\, w^\top S w , $$

$A$ and $b^\top$ the rows of $U$ that act on $x$ and $y$ (docs/theory.md, section 11).
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.quadratics import Quadratic
from largeprompt.icl.tasks import RegressionTask


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LimitPrediction:
    r"""$x_q \cdot (m_0 + M_1 w + m_2\, w^\top S w)$, for one task law.

    Attributes:
        task: The law of $w$ and $x_q$.
        constant: $m_0$.
        linear: $M_1$.
        quadratic: $m_2$.
    """

    task: RegressionTask
    constant: Float[Tensor, " d"]
    linear: Float[Tensor, "d d"]
    quadratic: Float[Tensor, " d"]

    def scaled(self, factor: float) -> "LimitPrediction":
        """Return `factor` times the prediction."""
        return LimitPrediction(
            self.task,
            factor * self.constant,
            factor * self.linear,
            factor * self.quadratic,
        )

    def error(self) -> "LimitPrediction":
        r"""Return the prediction less the answer without noise, $w \cdot x_q$."""
        eye = torch.eye(self.task.dim, dtype=self.linear.dtype)
        return dataclasses.replace(self, linear=self.linear - eye)

    def mean(self) -> Float[Tensor, " d"]:
        r"""Return $E_w m(w) = m_0 + m_2\, \mathrm{tr}(S W)$."""
        signal = (self.task.token_cov * self.task.task_cov).sum()
        return self.constant + signal * self.quadratic

    def mean_with_answer(self) -> Float[Tensor, ""]:
        r"""Return $E[x_q \cdot m(w)\; w \cdot x_q] = \mathrm{tr}(S_q M_1 W)$."""
        return (self.task.query_cov * (self.linear @ self.task.task_cov)).sum()

    def mean_product(self, other: "LimitPrediction") -> Float[Tensor, ""]:
        r"""Return $E[x_q \cdot m(w)\; x_q \cdot m'(w)]$ over the query and the task.

        With $\langle \cdot, \cdot \rangle$ the product of $S_q$, $q = w^\top S w$,

        $$ \langle m_0, m'_0 \rangle + \mathrm{tr}(M_1^\top S_q M'_1 W)
           + (\langle m_0, m'_2 \rangle + \langle m_2, m'_0 \rangle) E q
           + \langle m_2, m'_2 \rangle E q^2 . $$
        """
        cov, query, w = self.task.token_cov, self.task.query_cov, self.task.task_cov
        product = cov @ w
        signal = product.trace()
        fourth = signal**2 + 2 * (product * product.mT).sum()
        constant, quadratic = query @ other.constant, query @ other.quadratic
        return (
            self.constant @ (constant + signal * quadratic)
            + (self.linear * (query @ other.linear @ w)).sum()
            + self.quadratic @ (signal * constant + fourth * quadratic)
        )

    def mean_square(self) -> Float[Tensor, ""]:
        r"""Return $E (x_q \cdot m(w))^2$ over the query and the task."""
        return self.mean_product(self)


def limit_prediction(
    task: RegressionTask,
    bilinear: Float[Tensor, "*heads d+1 d+1"],
    value: Float[Tensor, "*heads d+1"],
) -> LimitPrediction:
    """Return what attention predicts from an infinite prompt, heads summed.

    Raises:
        ValueError: The shapes do not fit the task.
    """
    check_head(task, bilinear, value)
    d, cov = task.dim, task.token_cov
    heads = bilinear.reshape(-1, d + 1, d + 1), value.reshape(-1, d + 1)
    form, row = heads[0][:, :d, :d], heads[0][:, d, :d]  # A, b
    read, gain = heads[1][:, :d] @ cov, heads[1][:, d:]  # S v_x, v_y
    mixed = form.mT @ cov  # A'S
    return LimitPrediction(
        task,
        (form.mT @ read.unsqueeze(-1)).squeeze(-1).sum(0)
        + task.noise_variance * (gain * row).sum(0),
        (row.unsqueeze(-1) * read.unsqueeze(-2) + gain.unsqueeze(-1) * mixed).sum(0),
        (gain * row).sum(0),
    )


def limit_risk(
    task: RegressionTask,
    bilinear: Float[Tensor, "*heads d+1 d+1"],
    value: Float[Tensor, "*heads d+1"],
) -> Float[Tensor, ""]:
    r"""Return the mean square error at $n = \infty$, target noise included.

    Softmax attention and linear attention share it. Exact, for queries and tokens of
    any law with these covariances when attention is linear; for Gaussian tokens when
    it is softmax. Differentiable.

    Args:
        task: The law of the prompts.
        bilinear: $U$ with every scale folded in, for one head or several.
        value: $v$, the row that reads a prediction off a token.

    Raises:
        ValueError: The shapes do not fit the task.

    Source: derived in docs/theory.md, section 11.1.
    """
    error = limit_prediction(task, bilinear, value).error()
    return error.mean_square() + task.target_noise_variance


def value_quadratic(
    task: RegressionTask, value: Float[Tensor, " d+1"], other: Float[Tensor, " d+1"]
) -> Quadratic:
    r"""Return $v^\top G_w v'$, a polynomial in $w$."""
    cov, gain, gain_other = task.token_cov, value[-1], other[-1]
    return Quadratic(
        value[:-1] @ cov @ other[:-1] + task.noise_variance * gain * gain_other,
        cov @ (gain * other[:-1] + gain_other * value[:-1]),
        gain * gain_other * cov,
    )


def logit_quadratic(
    task: RegressionTask,
    bilinear: Float[Tensor, "d+1 d+1"],
    other: Float[Tensor, "d+1 d+1"],
) -> Quadratic:
    r"""Return $E_{x_q} u^\top G_w u'$ for $u = U (x_q, 0)$, a polynomial in $w$."""
    moment = bilinear[:, :-1] @ task.query_cov @ other[:, :-1].mT  # E u u'
    inputs, label = moment[:-1, :-1], moment[-1, -1]
    return Quadratic(
        (task.token_cov * inputs).sum() + task.noise_variance * label,
        task.token_cov @ (moment[:-1, -1] + moment[-1, :-1]),
        label * task.token_cov,
    )


def check_head(task: RegressionTask, bilinear: Tensor, value: Tensor) -> None:
    """Raise a ValueError unless the heads read tokens of this task."""
    width = task.dim + 1
    if (
        bilinear.ndim < 2
        or bilinear.shape[-2:] != (width, width)
        or value.shape != bilinear.shape[:-1]
    ):
        raise ValueError(
            f"bilinear and value must have shapes (..., {width}, {width}) and "
            f"(..., {width}); got {tuple(bilinear.shape)} and {tuple(value.shape)}"
        )
    if bilinear.dtype != task.token_cov.dtype or value.dtype != task.token_cov.dtype:
        raise ValueError(
            f"bilinear and value must be {task.token_cov.dtype} as the task is; got "
            f"{bilinear.dtype} and {value.dtype}"
        )
