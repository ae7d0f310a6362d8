r"""The population risk of several softmax heads whose predictions are summed.

Beside each head's own moments (docs/theory.md, section 2) the risk needs those of
every pair, $E[a_h a_k \mid w, x_q]$ over the same tokens: two-variable Laplace
integrals (`head_overlap`). Two heads with opposite logits and values make the
debiased gradient-descent predictor of He, Pan, Chen and Yang (2025).
"""

import dataclasses
import itertools
import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.cases import Cases, WhitenedHead, cases
from largeprompt.icl.control import controlled_means
from largeprompt.icl.estimates import RiskEstimate, exact, from_draws
from largeprompt.icl.head_overlap import SMALLEST, head_overlap
from largeprompt.icl.law_functions import LawFunctions, law_functions
from largeprompt.icl.points import normal_points
from largeprompt.icl.polynomials import (
    check_head,
    limit_prediction,
    limit_risk,
    logit_quadratic,
    value_quadratic,
)
from largeprompt.icl.tasks import RegressionTask


@final
@dataclasses.dataclass(frozen=True, eq=False)
class MultiheadRisk:
    r"""The risk of summed heads as a function of all $(U_h, v_h)$, noise included.

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
        self, bilinear: Float[Tensor, "h d+1 d+1"], value: Float[Tensor, "h d+1"]
    ) -> Float[Tensor, ""]:
        """Return the risk, differentiable in both arguments.

        Raises:
            ValueError: The shapes do not fit, or a logit variance is above 400.
        """
        limit = limit_risk(self.task, bilinear, value)
        if self.law.n == math.inf:
            return limit
        return limit + self._rest(self._heads(bilinear, value)).mean()

    @torch.no_grad()
    def estimate(
        self,
        bilinear: Float[Tensor, "h d+1 d+1"],
        value: Float[Tensor, "h d+1"],
        confidence: float = 0.99,
    ) -> RiskEstimate:
        r"""Return the risk with the error that the spread of the replicates shows.

        The controls are $v_h^\top G_w v_k$, $u_h^\top G_w u_k$, their product,
        $a_h a_k$ and $a_h c$.
        """
        task, answer = self.task, self.cases.answer
        limit = limit_risk(task, bilinear, value)
        if self.law.n == math.inf:
            return exact(limit)
        heads = self._heads(bilinear, value)
        responses = [(head.tilt * head.value).sum(-1) for head in heads]
        limits = [
            limit_prediction(task, form, row)
            for form, row in zip(bilinear, value, strict=True)
        ]
        controls = [response * answer for response in responses]
        expected = [one.mean_with_answer() for one in limits]
        for h, k in itertools.combinations_with_replacement(range(len(heads)), 2):
            values = (heads[h].value * heads[k].value).sum(-1).expand_as(answer)
            logits = (heads[h].tilt * heads[k].tilt).sum(-1)
            controls += [values, logits, values * logits, responses[h] * responses[k]]
            of_values = value_quadratic(task, value[h], value[k])
            of_logits = logit_quadratic(task, bilinear[h], bilinear[k])
            expected += [
                of_values.mean(task.task_cov),
                of_logits.mean(task.task_cov),
                of_values.mean_product(of_logits, task.task_cov),
                limits[h].mean_product(limits[k]),
            ]
        means = controlled_means(
            self._rest(heads), torch.stack(controls, -1), torch.stack(expected)
        )
        return from_draws(limit + means, confidence)

    def given_cases(
        self, bilinear: Float[Tensor, "h d+1 d+1"], value: Float[Tensor, "h d+1"]
    ) -> Float[Tensor, "replicates count"]:
        """Return the risk given each task vector and query, target noise included."""
        heads = self._heads(bilinear, value)
        limit = sum((head.tilt * head.value).sum(-1) for head in heads)
        missed = (limit - self.cases.answer).square()
        return self._rest(heads) + missed + self.task.target_noise_variance

    def _heads(self, bilinear: Tensor, value: Tensor) -> list[WhitenedHead]:
        """Return what each head sees of the tokens."""
        check_head(self.task, bilinear, value)
        pairs = zip(bilinear, value, strict=True)
        return [self.cases.whitened(form, row) for form, row in pairs]

    def _rest(self, heads: list[WhitenedHead]) -> Float[Tensor, "replicates count"]:
        r"""Return what a finite prompt adds in every case.

        $$ \sum_h \big(\epsilon_h a_h^2 + \phi_h t_h - 2 \phi_h a_h (a_h - c)\big)
           + 2 \sum_{h<k} \big(E[a_h^n a_k^n] - a_h a_k\big) . $$
        """
        answer = self.cases.answer
        rest = torch.zeros_like(answer)
        for tilt, read in heads:
            inverse_ess, excess = self.law((tilt * tilt).sum(-1))
            response, variance = (tilt * read).sum(-1), (read * read).sum(-1)
            missed = 2 * response * (response - answer)
            rest = rest + excess * response**2 + inverse_ess * (variance - missed)
        for one, other in itertools.combinations(heads, 2):
            rest = rest + 2 * self._joint_excess(one, other)
        return rest

    def _joint_excess(
        self, one: WhitenedHead, other: WhitenedHead
    ) -> Float[Tensor, "replicates count"]:
        r"""Return $E[a_h^n a_k^n] - a_h a_k$ of every case.

        Values split along the plane of both tilts, where weights and values depend,
        and the rest, of which only $E \sum w_i w'_i$ remembers.
        """
        first = (one.tilt**2).sum(-1).clamp(min=SMALLEST**2).sqrt()
        along_axis = one.tilt / first.unsqueeze(-1)
        along = (other.tilt * along_axis).sum(-1)
        rest = other.tilt - along.unsqueeze(-1) * along_axis
        across = (rest**2).sum(-1).clamp(min=SMALLEST**2).sqrt()
        axes = torch.stack([along_axis, rest / across.unsqueeze(-1)], dim=-1)
        shape = first.shape
        shared, moment = head_overlap(
            self.law.n, first.flatten(), along.flatten(), across.flatten()
        )
        seen = (one.value.unsqueeze(-2) @ axes).squeeze(-2)
        seen_other = (other.value.unsqueeze(-2) @ axes).squeeze(-2)
        unseen = (one.value * other.value).sum(-1) - (seen * seen_other).sum(-1)
        within = seen.unsqueeze(-2) @ moment.reshape(*shape, 2, 2)
        joint = (within.squeeze(-2) * seen_other).sum(-1)
        limits = (one.tilt * one.value).sum(-1) * (other.tilt * other.value).sum(-1)
        return joint + shared.reshape(shape) * unseen - limits


def multihead_risk(
    task: RegressionTask,
    n: float,
    generator: torch.Generator,
    count: int = 128,
    replicates: int = 8,
) -> MultiheadRisk:
    r"""Return the risk of several softmax heads over `n` tokens of a task.

    A pair of heads costs 0.3 to 5 ms a case, and up to 40 ms for logits of a standard
    deviation of 6; where that is too slow `simulated_risk` gives an interval.

    Args:
        task: The law of the prompts, with Gaussian inputs; float64.
        n: Prompt length from 1 to $10^7$, or infinity.
        generator: The source of the randomised points.
        count: Points in a replicate, a power of two.
        replicates: Independent replicates; at least two for an error estimate.

    Raises:
        ValueError: A number is outside its range, or the inputs are not Gaussian.
    """
    normals = normal_points(count, 2 * task.dim, generator, replicates)
    return MultiheadRisk(task, law_functions(n), cases(task, normals))
