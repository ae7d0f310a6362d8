"""The exact law of attention over Gaussian tokens: no draw, no torch."""

import dataclasses
from pathlib import Path
from typing import ClassVar, final

from typing_extensions import override

from largeprompt.experiments.sweep.experiment import Drawing, Experiment, Row
from largeprompt.experiments.sweep.key import Key


@final
@dataclasses.dataclass(frozen=True)
class LawCell(Experiment):
    r"""$\varphi$ and $\psi$ at one prompt length and logit variance.

    Attributes:
        n: The prompt length, from 1 to $10^{15}$.
        logit_variance: $s^2$, from 0 to 400.
    """

    drawing: ClassVar[Drawing] = Drawing("n", "parallel_mse", "logit_variance")

    n: int
    logit_variance: float

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not 1 <= self.n <= 10**15:
            raise ValueError(f"n must be from 1 to 10^15; got {self.n}")
        if not 0 <= self.logit_variance <= 400:
            raise ValueError(
                f"logit_variance must be from 0 to 400; got {self.logit_variance}"
            )

    @override
    def rows(self, key: Key, keep: Path) -> list[Row]:
        from largeprompt.laws import gaussian_law, phase

        law = gaussian_law(self.n, self.logit_variance)
        return [
            {
                "inverse_ess": float(law.inverse_ess),
                "parallel_mse": float(law.parallel_mse),
                "phase": phase(self.n, self.logit_variance).value,
            }
        ]
