"""The population risk along training, by gradient flow, at one prompt length."""

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
class FlowCell(Experiment):
    """The risk at times spaced geometrically, from a start drawn from the seed.

    The start is that of the preset and the seed: the same at every length and for both
    attentions.

    Attributes:
        preset: The published task.
        n: The prompt length.
        attention: `softmax` or `linear`.
        seed: Of the start and of the quasi-random points.
        time: When the flow ends, in steps times step size.
        checkpoints: At how many times the risk is given, besides the start.
        points: Points that the flow of softmax follows, a power of two.
        fresh_points: Points that its risk is evaluated on, a power of two from 16 on.
    """

    drawing: ClassVar[Drawing] = Drawing("t", "risk", "n", panel="attention")

    preset: str
    n: int
    attention: str = "softmax"
    seed: int = 0
    time: float = 30.0
    checkpoints: int = 16
    points: int = 2048
    fresh_points: int = 2**15

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_known("preset", self.preset, PRESETS)
        check_known("attention", self.attention, ATTENTIONS)
        check_least(self, n=1, seed=0, checkpoints=1, points=2, fresh_points=16)
        check_above_zero(self, "time")
        for name in ("points", "fresh_points"):
            if (value := getattr(self, name)) & (value - 1):
                raise ValueError(f"{name} must be a power of two; got {value}")

    @override
    def rows(self, key: Key, keep: Path) -> list[Row]:
        import numpy as np

        from largeprompt.icl.curves import SOFTMAX, CurveSettings, training_curve
        from largeprompt.icl.law_splines import law_splines
        from largeprompt.icl.parameters import Separate
        from largeprompt.icl.presets import preset

        setting = preset(self.preset)
        dim = setting.task.dim
        shared = Key.of({"start": self.preset, "seed": self.seed})
        times = np.geomspace(self.time / 100, self.time, self.checkpoints).tolist()
        settings = CurveSettings(
            task=setting.task,
            start=Separate.draw(dim, shared.generator(0)),
            logit_factor=setting.conventions.logit_scale.factor(dim),
            times=(0.0, *times),
            seed=key.number(0),
            points=self.points,
            fresh_points=self.fresh_points,
        )
        law = law_splines([self.n])[0] if self.attention == SOFTMAX else None
        curve = training_curve(settings, self.n, law)
        columns = zip(settings.times, curve.risk, curve.relative_error, strict=True)
        return [
            {"t": t, "risk": float(risk), "relative_error": float(error)}
            for t, risk, error in columns
        ]
