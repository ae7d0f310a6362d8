"""One forward pass of a model: every layer audited while it is computed."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import final

import torch
from jaxtyping import Int64
from torch import Tensor
from transformers import PreTrainedModel

from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.rows import Row, head_rows
from largeprompt.audit.statistics import query_statistics
from largeprompt.audit.surface import LawSurface, law_surface
from largeprompt.errors import UnsupportedModelError
from largeprompt.hf.attention import LayerRecord, recording
from largeprompt.hf.parity import parity_errors
from largeprompt.hf.windows import documented_window

Progress = Callable[[int, int], None]


@final
@dataclasses.dataclass(frozen=True)
class Question:
    """What to measure in every layer."""

    lengths: Sequence[int]
    queries: int
    eps: float


def capture(
    model: PreTrainedModel,
    tokens: Int64[Tensor, " n"],
    question: Question,
    progress: Progress | None = None,
) -> list[Row]:
    """Return the audit's rows, layer by layer, from one forward pass.

    Only the longest length is run: causality makes the first n positions the same as
    in a prompt of n tokens. Nothing outlives its layer but the rows, and the model's
    head (the logits over the vocabulary) is not evaluated.

    Args:
        model: A decoder with `sdpa` attention.
        tokens: The text, as long as the longest length.
        question: Lengths, queries and eps.
        progress: Called with the number of layers done and their total.

    Raises:
        UnsupportedModelError: The model's attention is not handled.
        ParityError: The model computes something else than its configuration says.
    """
    config = model.config.get_text_config()
    prefixes = {
        layer: [
            Prefixes.last(n, question.queries, documented_window(config, layer))
            for n in question.lengths
        ]
        for layer in range(config.num_hidden_layers)
    }
    law = law_surface()
    done: dict[int, list[Row]] = {}

    def audit(record: LayerRecord) -> None:
        if record.layer in done:
            raise UnsupportedModelError(f"layer {record.layer} attends more than once")
        done[record.layer] = [
            row
            for prefix in prefixes[record.layer]
            for row in layer_rows(record, prefix, law, question.eps)
        ]
        if progress is not None:
            progress(len(done), len(prefixes))

    with torch.inference_mode(), recording(model, audit):
        model.base_model(input_ids=tokens[None].to(model.device), use_cache=False)
    if not done:
        raise UnsupportedModelError(
            f"no layer of {type(model).__name__} called the attention function"
        )
    return [row for layer in sorted(done) for row in done[layer]]


def layer_rows(
    record: LayerRecord, prefixes: Prefixes, law: LawSurface, eps: float
) -> list[Row]:
    """Return one layer's rows at one length, after the check against the model."""
    statistics = query_statistics(
        record.query, record.key, record.value, prefixes, scale=record.scale
    )
    return head_rows(
        statistics,
        prefixes,
        law,
        layer=record.layer,
        kv_heads=record.key.shape[0],
        eps=eps,
        parity_errors=parity_errors(statistics.output, record, prefixes),
    )
