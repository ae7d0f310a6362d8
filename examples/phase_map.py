"""The phase map of a model: which heads can be linear at this length, and which cannot?

Every head, at several lengths, on the plane of prompt length and logit variance, with
the phases of softmax behind: linear, heavy-tailed, frozen.

    python examples/phase_map.py
"""

from collections.abc import Sequence
from pathlib import Path

from largeprompt import audit_model, load_model
from largeprompt.hf import load_text
from largeprompt.report import write_figure

OUT = Path("out/examples/phase_map.svg")


def main(
    out: Path = OUT,
    model: str = "smollm2",
    text: str = "prose",
    lengths: Sequence[int] = (256, 512, 1024, 2048),
    layers: Sequence[int] | None = None,
) -> dict[str, int]:
    """Draw the map; return how many heads are in each phase at the longest length."""
    loaded = load_model(model)
    result = audit_model(
        loaded.model,
        loaded.tokenizer,
        load_text(text),
        lengths,
        layers=layers,
        description=loaded.description,
    )
    write_figure(result, "phase-map", out)
    return result.summary["phases"]


if __name__ == "__main__":
    print(main(), OUT)
