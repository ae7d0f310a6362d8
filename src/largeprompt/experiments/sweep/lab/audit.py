"""Every head of a language model on one text, as a cell."""

import dataclasses
from pathlib import Path
from typing import ClassVar, final

from typing_extensions import override

from largeprompt.experiments.sweep.experiment import Drawing, Experiment, Row
from largeprompt.experiments.sweep.key import Key
from largeprompt.experiments.sweep.options import check_above_zero, check_least


@final
@dataclasses.dataclass(frozen=True)
class AuditCell(Experiment):
    """The rows of an audit, one a layer, head and length; nothing is drawn.

    Attributes:
        model: `smollm2`, a folder, a GGUF file, or a hub id.
        text: `prose`, `code`, or a text file in UTF-8.
        lengths: Prompt lengths in tokens.
        queries: Query positions measured at each length.
        eps: Relative error that a head must meet.
    """

    drawing: ClassVar[Drawing] = Drawing("n", "logit_variance", "layer", panel="text")

    model: str
    text: str = "prose"
    lengths: tuple[int, ...] = (256, 512, 1024, 2048)
    queries: int = 32
    eps: float = 0.1

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not self.lengths or min(self.lengths) < 1:
            raise ValueError(
                f"lengths must be at least one, from 1; got {list(self.lengths)}"
            )
        check_least(self, queries=1)
        check_above_zero(self, "eps")

    @override
    def rows(self, key: Key, keep: Path) -> list[Row]:
        from largeprompt.hf import audit_model, load_model, load_text

        model, tokenizer, description = load_model(self.model)
        result = audit_model(
            model,
            tokenizer,
            load_text(self.text),
            self.lengths,
            queries=self.queries,
            eps=self.eps,
            description=description,
        )
        return result.heads.to_pylist()
