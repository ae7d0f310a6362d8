"""How a head that is given generalises: to other lengths, covariates and tasks."""

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.cases import cases
from largeprompt.icl.estimates import RiskEstimate
from largeprompt.icl.law_functions import law_functions
from largeprompt.icl.linear import linear_risk
from largeprompt.icl.points import normal_points
from largeprompt.icl.polynomials import limit_risk
from largeprompt.icl.population import PopulationRisk
from largeprompt.icl.tasks import RegressionTask


@final
@dataclasses.dataclass(frozen=True)
class LengthCurve:
    """The risks of one head against the length of the prompts it is tested on.

    Attributes:
        lengths: The test lengths.
        softmax: The risk of softmax attention at each, with its interval.
        linear: The exact risk of linear attention with the same parameters.
        limit: The risk that both have at infinite length.
    """

    lengths: tuple[float, ...]
    softmax: tuple[RiskEstimate, ...]
    linear: tuple[float, ...]
    limit: float


def length_curve(
    task: RegressionTask,
    bilinear: Float[Tensor, "d+1 d+1"],
    value: Float[Tensor, " d+1"],
    lengths: Sequence[float],
    generator: torch.Generator,
    *,
    count: int = 1024,
    replicates: int = 8,
    confidence: float = 0.99,
) -> LengthCurve:
    r"""Return the risks of a trained head at test lengths it was not trained at.

    All lengths share their task vectors and queries, so that the curve is smooth. The
    task is that of the test: shifted covariates, queries or task vectors are another
    `RegressionTask` than the one trained on.

    Args:
        task: The law of the test prompts, with Gaussian inputs; float64.
        bilinear: $U$ with every scale folded in.
        value: $v$.
        lengths: Test lengths from 1 to $10^{15}$, or infinity.
        generator: The source of the randomised points.
        count: Points in a replicate, a power of two.
        replicates: Independent replicates, at least two.
        confidence: Of the intervals.

    Raises:
        ValueError: A length is outside its range, or the shapes do not fit.

    Source: docs/theory.md, sections 11.1 and 11.2.
    """
    shared = cases(task, normal_points(count, 2 * task.dim, generator, replicates))
    softmax = tuple(
        PopulationRisk(task, law_functions(n), shared).estimate(
            bilinear, value, confidence
        )
        for n in lengths
    )
    return LengthCurve(
        lengths=tuple(lengths),
        softmax=softmax,
        linear=tuple(float(linear_risk(task, n, bilinear, value)) for n in lengths),
        limit=float(limit_risk(task, bilinear, value)),
    )
