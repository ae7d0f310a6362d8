"""What a sweep repeats: one cell of an experiment, its options as fields."""

import abc
import dataclasses
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, final

from largeprompt.experiments.sweep.key import Key

Row: TypeAlias = dict[str, Any]


@final
@dataclasses.dataclass(frozen=True)
class Drawing:
    """How the results of an experiment are drawn unless one asks otherwise.

    Attributes:
        x: The column along the horizontal axis.
        y: The column that is measured.
        colour: The column that tells lines apart.
        panel: The column with a panel for each value; empty for one panel.
        reference: A column drawn as a dashed line beside `y`; empty for none.
    """

    x: str
    y: str
    colour: str
    panel: str = ""
    reference: str = ""


class Experiment(abc.ABC):
    """One cell: a final frozen dataclass whose fields are the experiment's options.

    Fields are `int`, `float`, `str`, `bool` or `tuple[int, ...]`; `__post_init__`
    raises a ValueError for values that do not fit. The module must be cheap to import:
    heavy libraries are imported in `rows`.
    """

    drawing: ClassVar[Drawing]

    @abc.abstractmethod
    def rows(self, key: Key, keep: Path) -> list[Row]:
        """Compute the cell and return its rows, at least one, the same columns in each.

        Args:
            key: The source of all its random numbers.
            keep: A directory of the cell's own, for checkpoints: it survives when the
                worker is killed, and goes when the cell is done. It may not exist.
        """
