"""What the curves cost when one trains for them: the time of a plain SGD step."""

import math
import time
from collections.abc import Sequence

import numpy as np
import torch

from largeprompt.icl.parameters import Separate
from largeprompt.icl.tasks import RegressionTask

STEPS, WARM_UP = 30, 5
TIMED = (10, 100, 1000)  # lengths; in between, the time of a step is interpolated
RATE, BATCH = 1e-3, 128


def sgd_seconds(
    task: RegressionTask, start: Separate, lengths: Sequence[int], steps: int
) -> float:
    """Extrapolate how long SGD takes for the curves of both attentions at all lengths.

    Args:
        task: The law of the prompts.
        start: The initial matrices.
        lengths: The prompt lengths of the curves.
        steps: Of each curve.
    """
    total = 0.0
    for softmax in (True, False):
        timed = [step_seconds(task, start, n, softmax=softmax) for n in TIMED]
        total += steps * float(np.interp(lengths, TIMED, timed).sum())
    return total


def step_seconds(
    task: RegressionTask, start: Separate, n: int, *, softmax: bool
) -> float:
    """Return the median time of one step: fresh prompts, autograd, float32."""
    generator = torch.Generator().manual_seed(0)
    matrices = [m.float().requires_grad_() for m in start.tensors().values()]
    key, query, value, output = matrices
    optimiser = torch.optim.SGD(matrices, lr=RATE)
    seconds = []
    for _ in range(WARM_UP + STEPS):
        began = time.perf_counter()
        prompts = task.sample(BATCH, n, generator, torch.float32)
        asked = (prompts.query @ query.mT).unsqueeze(1)  # b 1 k
        logits = asked @ (prompts.tokens @ key.mT).mT / math.sqrt(task.dim + 1)
        weights = torch.softmax(logits, dim=-1) if softmax else logits / n
        answer = (weights @ (prompts.tokens @ value.mT)) @ output.mT
        loss = torch.nn.functional.mse_loss(answer[:, 0, 0], prompts.y_query)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds[WARM_UP:]))
