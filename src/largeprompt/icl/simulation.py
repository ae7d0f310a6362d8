"""The risk of any predictor by drawing prompts: the oracle, and the last resort."""

from collections.abc import Callable

import torch
from torch import Tensor

from largeprompt.icl.estimates import RiskEstimate, from_draws
from largeprompt.icl.tasks import Prompts, RegressionTask

BLOCK = 2**21  # numbers drawn at once


@torch.no_grad()
def square_errors(
    task: RegressionTask,
    predict: Callable[[Prompts], Tensor],
    n: int,
    prompts: int,
    generator: torch.Generator,
) -> Tensor:
    """Return the square errors of a predictor on drawn prompts.

    Args:
        task: The law of the prompts.
        predict: The predictor.
        n: The prompt length.
        prompts: How many prompts to draw.
        generator: The source of the draws.
    """
    rows = max(1, BLOCK // (n * task.dim))
    blocks = []
    for start in range(0, prompts, rows):
        drawn = task.sample(min(rows, prompts - start), n, generator)
        blocks.append((predict(drawn) - drawn.y_query).square())
    return torch.cat(blocks)


def simulated_risk(
    task: RegressionTask,
    predict: Callable[[Prompts], Tensor],
    n: int,
    prompts: int,
    generator: torch.Generator,
    confidence: float = 0.99,
) -> RiskEstimate:
    """Return the mean square error of a predictor on drawn prompts, with its interval.

    For what no closed form covers: softmax over tokens that are not Gaussian, or with
    the query among its keys.
    """
    errors = square_errors(task, predict, n, prompts, generator)
    return from_draws(errors, confidence)
