r"""The population risk of one softmax head at any prompt length, without any prompt.

Given the task vector and the query, the exact finite-prompt law (docs/theory.md,
section 2) knows mean and variance of the prediction. With $s^2 = u^\top G_w u$,
$a = v^\top G_w u$, $c = w \cdot x_q$ and $\epsilon = (\psi - \phi)/s^2$,

$$ R_n = R_\infty + E_{w, x_q} \big[ \epsilon\, a^2 + \phi\, v^\top G_w v
   - 2 \phi\, a (a - c) \big] . $$

$R_\infty$ is a polynomial; only the rest, of order $1/n$, is averaged over
quasi-random points (docs/theory.md, section 11.1).
"""

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.cases import Cases, cases
from largeprompt.icl.control import Averaged, controlled_means
from largeprompt.icl.estimates import RiskEstimate, exact, from_draws
from largeprompt.icl.law_functions import LawFunctions, law_functions
from largeprompt.icl.points import normal_points
from largeprompt.icl.polynomials import (
    limit_prediction,
    limit_risk,
    logit_quadratic,
    value_quadratic,
)
from largeprompt.icl.tasks import RegressionTask


@final
@dataclasses.dataclass(frozen=True, eq=False)
class PopulationRisk:
    r"""The risk as a function of the head $(U, v)$, target noise included.

    Differentiable in both arguments, deterministic once made. A test on longer prompts
    or on a shifted task is the same head given to another `PopulationRisk`.

    Attributes:
        task: The law of the prompts.
        law: The finite-prompt law at their length.
        cases: Task vectors and queries, in independent replicates along the first
            dimension.
    """

    task: RegressionTask
    law: LawFunctions
    cases: Cases

    def __call__(
        self, bilinear: Float[Tensor, "d+1 d+1"], value: Float[Tensor, " d+1"]
    ) -> Float[Tensor, ""]:
        """Return the risk.

        Args:
            bilinear: $U$ with every scale folded in; logits are $z_i^T U (x_q, 0)$.
            value: $v$, the row that reads a prediction off a token.

        Raises:
            ValueError: The shapes do not fit, or a logit variance is above 400.
        """
        limit = limit_risk(self.task, bilinear, value)
        inverse_ess, excess = self.law(
            logit_quadratic(self.task, bilinear, bilinear).mean(self.task.task_cov)
        )
        averaged = self._averaged(bilinear, value)
        # where the logit variance hardly varies, these slopes leave nothing to average
        slopes = torch.stack([inverse_ess, excess - 2 * inverse_ess, 2 * inverse_ess])
        surplus = averaged.controls.mean((0, 1)) - averaged.expected
        return limit + averaged.rest.mean() - slopes @ surplus[:3]

    @torch.no_grad()
    def estimate(
        self,
        bilinear: Float[Tensor, "d+1 d+1"],
        value: Float[Tensor, " d+1"],
        confidence: float = 0.99,
    ) -> RiskEstimate:
        """Return the risk with the error that the spread of the replicates shows.

        Raises:
            ValueError: As a call, or there are fewer than two replicates.
        """
        limit = limit_risk(self.task, bilinear, value)
        if self.law.n == math.inf:
            return exact(limit)
        averaged = self._averaged(bilinear, value)
        return from_draws(limit + controlled_means(*averaged), confidence)

    def given_cases(
        self, bilinear: Float[Tensor, "d+1 d+1"], value: Float[Tensor, " d+1"]
    ) -> Float[Tensor, "replicates count"]:
        """Return the risk given each task vector and query, target noise included."""
        tilt, read = self.cases.whitened(bilinear, value)
        missed = ((tilt * read).sum(-1) - self.cases.answer).square()
        rest = self._averaged(bilinear, value).rest
        return rest + missed + self.task.target_noise_variance

    def _averaged(self, bilinear: Tensor, value: Tensor) -> Averaged:
        r"""Return $\epsilon a^2 + \phi t - 2\phi a(a - c)$ of all cases, with controls.

        They are $t = v^\top G_w v$, $a^2$, $a c$, $s^2$, $s^2 t$ and $c^2$.
        """
        task, answer = self.task, self.cases.answer
        limit = limit_prediction(task, bilinear, value)
        tilt, read = self.cases.whitened(bilinear, value)
        square, t = (tilt * tilt).sum(-1), (read * read).sum(-1)
        inverse_ess, excess = self.law(square)
        t, a = t.expand_as(square), (tilt * read).sum(-1)
        controls = [t, a**2, a * answer, square, square * t, answer**2]
        values = value_quadratic(task, value, value)
        logits = logit_quadratic(task, bilinear, bilinear)
        expected = [
            values.mean(task.task_cov),
            limit.mean_square(),
            limit.mean_with_answer(),
            logits.mean(task.task_cov),
            values.mean_product(logits, task.task_cov),
            (task.query_cov * task.task_cov).sum(),
        ]
        rest = excess * a**2 + inverse_ess * (t - 2 * a * (a - answer))
        return Averaged(rest, torch.stack(controls, -1), torch.stack(expected))


def population_risk(
    task: RegressionTask,
    n: float,
    generator: torch.Generator,
    count: int = 1024,
    replicates: int = 8,
) -> PopulationRisk:
    r"""Return the risk of softmax attention over `n` tokens of a task.

    Args:
        task: The law of the prompts, with Gaussian inputs; float64.
        n: Prompt length from 1 to $10^{15}$, or infinity.
        generator: The source of the randomised points.
        count: Points in a replicate, a power of two.
        replicates: Independent replicates; at least two for an error estimate.

    Raises:
        ValueError: A number is outside its range, or the inputs are not Gaussian.
    """
    normals = normal_points(count, 2 * task.dim, generator, replicates)
    return PopulationRisk(task, law_functions(n), cases(task, normals))
