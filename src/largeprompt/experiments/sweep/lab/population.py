"""Exact risks of in-context regression at one prompt length."""

import dataclasses
from pathlib import Path
from typing import ClassVar, final

from typing_extensions import override

from largeprompt.experiments.sweep.experiment import Drawing, Experiment, Row
from largeprompt.experiments.sweep.key import Key
from largeprompt.experiments.sweep.lab.published import PRESETS
from largeprompt.experiments.sweep.options import (
    check_above_zero,
    check_known,
    check_least,
)


@final
@dataclasses.dataclass(frozen=True)
class PopulationCell(Experiment):
    """Risks of the head that is best for linear attention at some length.

    Rows: softmax and linear attention with that head, and the least risk of any
    predictor, at the test length.

    Attributes:
        preset: The published task.
        n: The length of the prompts that the risk is of.
        trained: The length whose linear optimum the head is; 0 is `n`.
        logit_scale: What logits are multiplied and values divided by: it changes the
            softmax, not the limit of long prompts.
        seed: Of the quasi-random points and of the inputs behind the least risk.
        points: Quasi-random points in a replicate, a power of two.
        draws: Prompts whose inputs are drawn for the least risk, at least 2; with 0
            that risk is left out, as very long prompts demand.
    """

    drawing: ClassVar[Drawing] = Drawing("n", "risk", "predictor", panel="preset")

    preset: str
    n: int
    trained: int = 0
    logit_scale: float = 1.0
    seed: int = 0
    points: int = 1024
    draws: int = 256

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_known("preset", self.preset, PRESETS)
        check_least(self, n=1, trained=0, seed=0, points=1, draws=0)
        check_above_zero(self, "logit_scale")
        if self.draws == 1:
            raise ValueError("draws must be 0 or at least 2; got 1")
        if self.points & (self.points - 1):
            raise ValueError(f"points must be a power of two; got {self.points}")

    @override
    def rows(self, key: Key, keep: Path) -> list[Row]:
        from largeprompt.icl import (
            bayes_risk,
            linear_optimum,
            linear_risk,
            population_risk,
            preset,
            reading_head,
        )

        task = preset(self.preset).task
        bilinear, value = reading_head(linear_optimum(task, self.trained or self.n))
        head = bilinear * self.logit_scale, value / self.logit_scale
        risk = population_risk(task, self.n, key.generator(0), self.points)
        softmax = risk.estimate(*head)
        linear = float(linear_risk(task, self.n, *head))
        rows: list[Row] = [
            {"predictor": "softmax", "risk": softmax.value, "radius": softmax.radius},
            {"predictor": "linear", "risk": linear, "radius": 0.0},
        ]
        if self.draws:
            least = bayes_risk(task, self.n, self.draws, key.generator(1))
            value, radius = least.value, least.radius
            rows.append({"predictor": "least", "risk": value, "radius": radius})
        return rows
