"""Stochastic gradient descent on sampled prompts, from checkpoints of its own."""

import dataclasses
from pathlib import Path
from typing import ClassVar, final

from typing_extensions import override

from largeprompt.experiments.sweep.experiment import Drawing, Experiment, Row
from largeprompt.experiments.sweep.key import Key
from largeprompt.experiments.sweep.lab.published import ATTENTIONS, PRESETS
from largeprompt.experiments.sweep.options import (
    check_above_zero,
    check_known,
    check_least,
)


@final
@dataclasses.dataclass(frozen=True)
class TrainingCell(Experiment):
    """The loss of the batches along a run, averaged over stretches of it.

    A cell whose worker was killed goes on from its last checkpoint, to the same bits.

    Attributes:
        preset: The published task.
        n: The prompt length.
        attention: `softmax` or `linear`.
        seed: Of the start and of the batches.
        rate: The step size.
        steps: How many steps.
        batch: Prompts a step.
        stretches: Into how many equal parts the steps are divided.
        checkpoint_every: Steps between checkpoints.
    """

    drawing: ClassVar[Drawing] = Drawing("t", "loss", "n", panel="attention")

    preset: str
    n: int
    attention: str = "softmax"
    seed: int = 0
    rate: float = 1e-3
    steps: int = 1000
    batch: int = 128
    stretches: int = 10
    checkpoint_every: int = 1000

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_known("preset", self.preset, PRESETS)
        check_known("attention", self.attention, ATTENTIONS)
        check_least(self, n=1, seed=0, steps=1, batch=1, stretches=1)
        check_least(self, checkpoint_every=1)
        check_above_zero(self, "rate")
        if self.steps % self.stretches:
            raise ValueError(
                "steps must be a multiple of stretches; "
                f"got {self.steps} and {self.stretches}"
            )

    @override
    def rows(self, key: Key, keep: Path) -> list[Row]:
        from largeprompt.icl.batches import PromptStream
        from largeprompt.icl.checkpoint import train
        from largeprompt.icl.estimators import BatchGradient
        from largeprompt.icl.optimisers import SGD
        from largeprompt.icl.parameters import Separate
        from largeprompt.icl.presets import preset
        from largeprompt.icl.responses import Linear, Softmax
        from largeprompt.icl.train import Training

        setting = preset(self.preset)
        stream = PromptStream(
            setting.task, self.n, setting.conventions, batch=self.batch
        )
        softmax = self.attention == "softmax"
        shared = Key.of({"start": self.preset, "seed": self.seed})
        run = Training(
            stream=stream,
            estimator=BatchGradient(Softmax() if softmax else Linear(stream.divisor)),
            optimiser=SGD(self.rate),
            initial=Separate.draw(setting.task.dim, shared.generator(0)),
            seed=key.number(0),
        )
        end = train(run, self.steps, keep, checkpoint_every=self.checkpoint_every)
        losses = end.losses.reshape(self.stretches, -1).mean(1).tolist()
        ends = [(k + 1) * self.steps // self.stretches for k in range(self.stretches)]
        return [
            {"step": step, "t": step * self.rate, "loss": loss}
            for step, loss in zip(ends, losses, strict=True)
        ]
