r"""The risk of softmax attention on fixed points, with its gradient.

The same function as `population_risk`, made for flows: closed-form gradients in place
of a graph, splines in place of polynomials. With $s^2 = u^\top G_w u$,
$a = v^\top G_w u$, $t = v^\top G_w v$, $c = w \cdot x_q$ and $h = (\psi - \phi)/s^2$,

$$ R_n = R_\infty + E_{w, x_q}\big[ h\, a^2 + \phi\, (t - 2 a (a - c)) \big] . $$

The limit $R_\infty$ is a polynomial and exact; only the rest, of order $1/n$, is an
average over points.
"""

from typing import NamedTuple, final

import numpy as np
from typing_extensions import override

from largeprompt.icl.law_splines import MAX_LOGIT_VARIANCE, LawSpline
from largeprompt.icl.polynomial_risk import PolynomialRisk
from largeprompt.icl.risk import Array, Risk, merge, unmerge
from largeprompt.icl.tasks import RegressionTask
from largeprompt.icl.wide_points import WeightedPoints


class Forms(NamedTuple):
    """The bilinear forms of a head at every point, and the vectors they come from."""

    logit: Array  # G_w u, m by d + 1
    value: Array  # G_w v, m by d + 1
    logit_variance: Array
    limit: Array  # a
    value_variance: Array  # t


@final
class SoftmaxRisk(Risk):
    """Population risk of softmax attention over `law.n` Gaussian tokens.

    Source: derived in docs/theory.md, section 13, equations (13.5) to (13.7).
    """

    def __init__(
        self, task: RegressionTask, law: LawSpline, points: WeightedPoints
    ) -> None:
        """Carry the points to task vectors and queries.

        Args:
            task: The law of the prompts; its tokens are Gaussian.
            law: The finite-prompt law at the prompt length.
            points: For averages over the standard normal law in dimension $2d$.
        """
        self.limit = PolynomialRisk(task)
        self.law = law
        normals, self.weights = points
        d = task.dim
        self.w = normals[:, :d] @ np.linalg.cholesky(self.limit.task_cov).T
        queries = normals[:, d:] @ np.linalg.cholesky(self.limit.query_cov).T
        self.answer = np.sum(self.w * queries, axis=1)
        self.queries = np.pad(queries, ((0, 0), (0, 1)))  # x_q, 0
        self.cross = self.w @ self.limit.token_cov  # E[y x] given w
        self.power = np.sum(self.w * self.cross, axis=1) + task.noise_variance

    @property
    @override
    def dim(self) -> int:
        return self.limit.dim

    @override
    def value(self, merged: Array) -> float:
        forms = self._forms(merged)
        law = self.law(forms.logit_variance)
        gap = forms.limit * (forms.limit - self.answer)
        rest = law.excess * forms.limit**2
        rest += law.inverse_ess * (forms.value_variance - 2 * gap)
        return self.limit.value(merged) + float(self.weights @ rest) / len(rest)

    @override
    def gradient(self, merged: Array) -> Array:
        u_form, v_form, s2, a, t = self._forms(merged)
        law, gap = self.law(s2), a * (a - self.answer)
        d_a = 2 * (a * law.excess - law.inverse_ess * (2 * a - self.answer))
        d_s2 = law.excess_slope * a**2 + law.inverse_ess_slope * (t - 2 * gap)
        share = self.weights / len(a)
        d_a, d_s2, d_t = share * d_a, share * d_s2, share * law.inverse_ess
        d_u = d_a[:, None] * v_form + (2 * d_s2)[:, None] * u_form
        d_v = d_a @ u_form + 2 * d_t @ v_form
        rest = merge(d_u.T @ self.queries, d_v)
        return self.limit.gradient(merged) + rest

    def logit_variances(self, merged: Array) -> Array:
        r"""Return $u^\top G_w u$ at each point: the variance of a prompt's logits.

        Raises:
            ValueError: One is above 400, where the law is not tabulated.
        """
        variances = self._forms(merged).logit_variance
        if not variances.max() <= MAX_LOGIT_VARIANCE:
            raise ValueError(
                f"logit variances must be at most {MAX_LOGIT_VARIANCE:g}; "
                f"got {variances.max():g}"
            )
        return variances

    def value_variances(self, merged: Array) -> Array:
        r"""Return $v^\top G_w v$ at each point: the variance of a prompt's values."""
        return self._forms(merged).value_variance

    def _forms(self, merged: Array) -> Forms:
        full, v = unmerge(merged, self.dim)
        u = self.queries @ full.T
        u_form, v_form = self._covariance(u), self._covariance(v[None])
        s2 = np.einsum("md,md->m", u, u_form)
        return Forms(u_form, v_form, s2, u_form @ v, v_form @ v)

    def _covariance(self, vectors: Array) -> Array:
        r"""Return $G_w$ times vectors, one for each point or one for all."""
        d = self.dim
        x, y = vectors[:, :d], vectors[:, d]
        product = np.empty((len(self.w), d + 1))
        product[:, :d] = x @ self.limit.token_cov + y[:, None] * self.cross
        product[:, d] = np.einsum(
            "md,md->m", np.broadcast_to(x, self.w.shape), self.cross
        )
        product[:, d] += y * self.power
        return product
