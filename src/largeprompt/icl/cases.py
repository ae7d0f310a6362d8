r"""A task and a query, drawn or quasi-random, and what a head sees of the tokens then.

Given $(w, x_q)$ a Gaussian token is $z = L g$ with standard normal $g \in
\mathbb{R}^{d+1}$ and $L = \begin{pmatrix} C & 0 \\ w^\top C & \sigma \end{pmatrix}$.
A head's tilt and value row are therefore two vectors: $L^\top u$ and $L^\top v$.
"""

import dataclasses
import math
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.tasks import RegressionTask, TokenLaw


class WhitenedHead(NamedTuple):
    r"""$L^\top u$ and $L^\top v$ in every case; their products are $s^2$, $a$, ..."""

    tilt: Float[Tensor, "*cases e"]
    value: Float[Tensor, "*cases e"]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Cases:
    r"""Pairs of a task vector and a query, over which a risk is an average.

    Attributes:
        root: $C$, the Cholesky factor of the covariance of the tokens' inputs.
        noise: $\sigma$, the standard deviation of the labels' noise.
        w: The task vectors.
        x_query: The queries' inputs.
    """

    root: Float[Tensor, "d d"]
    noise: float
    w: Float[Tensor, "*cases d"]
    x_query: Float[Tensor, "*cases d"]

    @property
    def answer(self) -> Float[Tensor, "*cases"]:
        r"""$c = w \cdot x_q$."""
        return (self.w * self.x_query).sum(-1)

    def whitened(
        self, bilinear: Float[Tensor, "d+1 d+1"], value: Float[Tensor, " d+1"]
    ) -> WhitenedHead:
        r"""Return $L^\top U (x_q, 0)$ and $L^\top v$."""
        tilt = self.x_query @ bilinear[:, :-1].mT
        return WhitenedHead(self._whiten(tilt), self._whiten(value))

    def _whiten(self, vector: Float[Tensor, "*c d+1"]) -> Float[Tensor, "*cases d+1"]:
        inputs, label = vector[..., :-1], vector[..., -1:]
        seen = (inputs + label * self.w) @ self.root
        last = (self.noise * label).expand(*seen.shape[:-1], 1)
        return torch.cat([seen, last], dim=-1)


def cases(task: RegressionTask, normals: Float[Tensor, "*cases 2*d"]) -> Cases:
    r"""Return the cases that standard normal vectors stand for.

    Raises:
        ValueError: The vectors are not of dimension $2 d$, or the inputs not Gaussian.
    """
    if normals.shape[-1] != 2 * task.dim:
        raise ValueError(
            f"points must have dimension {2 * task.dim}, the task's and the query's; "
            f"got {normals.shape[-1]}"
        )
    check_gaussian(task)
    w, x_query = normals.tensor_split(2, dim=-1)
    return Cases(
        torch.linalg.cholesky(task.token_cov),
        math.sqrt(task.noise_variance),
        w @ torch.linalg.cholesky(task.task_cov).mT,
        x_query @ torch.linalg.cholesky(task.query_cov).mT,
    )


def check_gaussian(task: RegressionTask) -> None:
    """Raise a ValueError unless the inputs are Gaussian."""
    if task.token_law is not TokenLaw.GAUSSIAN:
        raise ValueError(
            "the exact risk of softmax attention needs Gaussian inputs; got the token "
            f"law {task.token_law.value!r}"
        )
