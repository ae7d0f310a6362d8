r"""The risks that are polynomials: linear attention at any length, and the limit.

Given $w$ the token $(x, y)$ has covariance $G_w$, and linear attention predicts
$v^\top \hat G U z_q$ with $\hat G$ the empirical second moment of $n$ tokens. By
Wishart moments, for $a = v^\top G_w u$, $u = U z_q$ and $c = w \cdot x_q$,

$$ R = E\Big[(a - c)^2 + \tfrac1n\big(v^\top G_w v \; u^\top G_w u + a^2\big)\Big]
       + \sigma^2 . $$

Every expectation is a moment of the Gaussian $w$ of order four at most. At
$n = \infty$ this is the limit of softmax attention too.
"""

import math
from typing import final

import numpy as np
from typing_extensions import override

from largeprompt.icl.risk import Array, Risk, merge, unmerge
from largeprompt.icl.tasks import RegressionTask, TokenLaw


@final
class PolynomialRisk(Risk):
    r"""Population risk of linear attention with normaliser $n$; of any at infinity.

    Source: docs/theory.md, section 13, equations (13.1) to (13.4).
    """

    def __init__(self, task: RegressionTask, n: float = math.inf) -> None:
        """Prepare the moments of a task.

        Args:
            task: The law of the prompts; its tokens are Gaussian.
            n: The prompt length, at least 1 or infinite.

        Raises:
            ValueError: `n` is below 1, or the tokens are not Gaussian.
        """
        if not n >= 1:
            raise ValueError(f"n must be at least 1; got {n}")
        check_gaussian(task)
        self.n = n
        self.token_cov = task.token_cov.double().numpy()
        self.query_cov = task.query_cov.double().numpy()
        self.task_cov = task.task_cov.double().numpy()
        self.noise_variance = task.noise_variance
        self.target_noise = task.target_noise_variance
        product = self.token_cov @ self.task_cov
        self.signal = float(np.trace(product))  # E w'Sw
        self.spread = float(np.sum(product * product.T))  # tr (SW)^2, half its variance
        self.sandwich = product @ self.token_cov  # S W S

    @property
    @override
    def dim(self) -> int:
        return len(self.token_cov)

    @override
    def value(self, merged: Array) -> float:
        return sum(value for value, _ in self._terms(merged)) + self.target_noise

    @override
    def gradient(self, merged: Array) -> Array:
        return np.sum([gradient for _, gradient in self._terms(merged)], axis=0)

    def _terms(self, merged: Array) -> list[tuple[float, Array]]:
        """Return the terms of the risk and their gradients."""
        terms = [self._square(merged, residual=True)]
        if self.n < math.inf:
            noise = [self._square(merged, residual=False), self._product(merged)]
            terms += [(value / self.n, slope / self.n) for value, slope in noise]
        return terms

    def _square(self, merged: Array, *, residual: bool) -> tuple[float, Array]:
        r"""Return $E[(a - c)^2]$, or $E[a^2]$, and its gradient.

        $a = x_q^\top(\alpha + B w + \gamma\, w^\top S w)$; equation (13.2).
        """
        d = self.dim
        full, v = unmerge(merged, d)
        U, u, vx, vy = full[:d, :d], full[d, :d], v[:d], v[d]
        S, Sq, sigma2 = self.token_cov, self.query_cov, self.noise_variance
        read = S @ vx
        alpha = U.T @ read + sigma2 * vy * u
        B = vy * U.T @ S + np.outer(u, read)
        gamma = vy * u
        if residual:
            B = B - np.eye(d)
        fourth = self.signal**2 + 2 * self.spread
        d_alpha = 2 * Sq @ (alpha + self.signal * gamma)
        d_gamma = 2 * Sq @ (fourth * gamma + self.signal * alpha)
        d_B = 2 * Sq @ B @ self.task_cov
        value = (alpha @ d_alpha + gamma @ d_gamma + np.sum(B * d_B)) / 2
        d_full = np.zeros_like(full)
        d_full[:d, :d] = np.outer(read, d_alpha) + vy * S @ d_B.T
        d_full[d, :d] = vy * (sigma2 * d_alpha + d_gamma) + d_B @ read
        d_vx = S @ (U @ d_alpha + d_B.T @ u)
        d_vy = u @ (sigma2 * d_alpha + d_gamma) + np.sum(d_B * (U.T @ S))
        return float(value), merge(d_full, np.append(d_vx, d_vy))

    def _product(self, merged: Array) -> tuple[float, Array]:
        r"""Return $E[v^\top G_w v \; u^\top G_w u]$, its gradient too; (13.3)."""
        d = self.dim
        full, v = unmerge(merged, d)
        vx, vy, S, power = v[:d], v[d], self.token_cov, self.signal
        power = power + self.noise_variance  # E y^2
        columns = full[:, :d]
        moment = columns @ self.query_cov @ columns.T  # E u u'
        across, last = moment[:d, d], moment[d, d]
        value_square = vx @ S @ vx + vy**2 * power
        logit_square = np.sum(S * moment[:d, :d]) + last * power
        read = self.sandwich @ vx
        value = value_square * logit_square + 4 * vy * read @ across
        value += 2 * vy**2 * last * self.spread
        d_moment = np.empty_like(moment)
        d_moment[:d, :d] = value_square * S
        d_moment[:d, d] = d_moment[d, :d] = 2 * vy * read
        d_moment[d, d] = value_square * power + 2 * vy**2 * self.spread
        d_full = np.zeros_like(full)
        d_full[:, :d] = 2 * d_moment @ columns @ self.query_cov
        d_vx = 2 * S @ vx * logit_square + 4 * vy * self.sandwich @ across
        d_vy = 2 * vy * (power * logit_square + 2 * last * self.spread)
        d_vy += 4 * read @ across
        return float(value), merge(d_full, np.append(d_vx, d_vy))


def check_gaussian(task: RegressionTask) -> None:
    """Raise a ValueError unless the tokens of the task are Gaussian."""
    if task.token_law is not TokenLaw.GAUSSIAN:
        raise ValueError(
            "closed-form risks need Gaussian tokens; "
            f"got the token law {task.token_law.value!r}"
        )
