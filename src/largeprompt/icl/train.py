r"""Training a head on fresh prompts; a resumed run equals an unbroken one bit for bit.

The random numbers of a step are a function of the run's seed and the step's number
alone, so that nothing but the parameters and the optimiser's state has to survive.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.batches import PromptStream
from largeprompt.icl.estimators import GradientEstimator
from largeprompt.icl.optimisers import Optimiser, State
from largeprompt.icl.parameters import Parameters

Progress = Callable[[int, float], None]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class TrainingState:
    """Where a run stands.

    Attributes:
        parameters: After the steps made so far.
        optimiser: The optimiser's state.
        losses: The loss of the batch at every step made so far, before the step.
    """

    parameters: Parameters
    optimiser: State
    losses: Float[Tensor, " steps"]

    @property
    def step(self) -> int:
        """How many steps have been made."""
        return len(self.losses)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Training:
    """A run: everything that decides its outcome.

    Attributes:
        stream: Where its batches come from.
        estimator: The gradient that is followed.
        optimiser: How it is followed.
        initial: The parameters at the start; their type is the parametrisation.
        seed: Of the batches.
    """

    stream: PromptStream
    estimator: GradientEstimator
    optimiser: Optimiser
    initial: Parameters
    seed: int = 0

    def __post_init__(self) -> None:
        """Check that head, task and seed fit together.

        Raises:
            ValueError: The head reads tokens of another width than the task's, a
                parameter is not float64, or the seed is negative.
        """
        width = self.initial.merge(1.0).value.shape[0]
        if width != self.stream.task.dim + 1:
            raise ValueError(
                f"the head must read tokens of width {self.stream.task.dim + 1}; "
                f"got parameters of width {width}"
            )
        if self.initial.flat().dtype != torch.float64:
            raise ValueError(
                f"parameters must be float64; got {self.initial.flat().dtype}"
            )
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0; got {self.seed}")

    def start(self) -> TrainingState:
        """Return the state before the first step."""
        flat = self.initial.flat()
        return TrainingState(
            self.initial, self.optimiser.start(flat), flat.new_empty(0)
        )

    @torch.no_grad()
    def advance(
        self, state: TrainingState, steps: int, progress: Progress | None = None
    ) -> TrainingState:
        """Return the state some steps later.

        Args:
            state: Where to start from; it is not changed.
            steps: How many steps to make, at least 0.
            progress: Called after every step with its number, from 1, and its loss.

        Raises:
            FloatingPointError: The loss stopped being finite.
        """
        stream, factor = self.stream, self.stream.logit_factor
        like, memory = self.initial, state.optimiser
        flat = state.parameters.flat()
        losses = torch.cat([state.losses, flat.new_empty(steps)])
        for step in range(state.step, state.step + steps):
            parameters = like.unflat(flat)
            head = parameters.merge(factor)
            generator = step_generator(self.seed, step)
            estimate = self.estimator.estimate(stream, head, generator)
            loss = float(estimate.loss)
            if not math.isfinite(loss):
                raise FloatingPointError(
                    f"the loss is {loss} at step {step + 1}; take smaller steps"
                )
            losses[step] = loss
            gradient = parameters.pull_back(estimate.gradient, factor).flat()
            flat, memory = self.optimiser.update(flat, estimate.loss, gradient, memory)
            if progress is not None:
                progress(step + 1, loss)
        return TrainingState(like.unflat(flat), memory, losses)

    def options(self) -> dict[str, Any]:
        """Return every option as JSON-able values, to be recorded with a result."""
        return {
            "stream": self.stream.options(),
            "estimator": self.estimator.options(),
            "optimiser": self.optimiser.options(),
            "parametrisation": type(self.initial).__name__,
            "initial": {k: v.tolist() for k, v in self.initial.tensors().items()},
            "seed": self.seed,
        }


def step_generator(seed: int, step: int) -> torch.Generator:
    """Return the generator of one step; those of other steps are independent of it."""
    sequence = np.random.SeedSequence(seed, spawn_key=(step,))
    state = sequence.generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))
