"""One forward pass of a model: every layer audited while it is computed."""

import contextlib
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Int64
from torch import Tensor
from transformers import PreTrainedModel

from largeprompt.audit.layer import LayerArrays, layer_rows
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.rows import Row
from largeprompt.audit.selection import Question as Question
from largeprompt.audit.selection import chosen
from largeprompt.audit.store import Blocks
from largeprompt.errors import NotFiniteError, UnsupportedModelError
from largeprompt.hf.attention import Implementation, LayerRecord, listening
from largeprompt.hf.checks import check_attention
from largeprompt.hf.parity import parity_errors
from largeprompt.hf.rotary import before_rotary
from largeprompt.hf.shapes import ModelShape
from largeprompt.hf.streamed import streamed_attention, streamed_mask
from largeprompt.hf.windows import documented_window

STREAMED = Implementation(streamed_attention, streamed_mask, softcaps=True)

Progress = Callable[[int, int], None]


class _Enough(Exception):
    """Every layer asked for is done: the rest of the pass is not needed."""


def capture(
    model: PreTrainedModel,
    tokens: Int64[Tensor, " n"],
    question: Question,
    progress: Progress | None = None,
    *,
    text: str = "text",
    blocks: Blocks | None = None,
    block: str = "",
) -> list[Row]:
    """Return the audit's rows, layer by layer, from one forward pass.

    Only the longest length is run: causality makes the first n positions the same as
    in a prompt of n tokens. A model that reads both ways is asked for one length, that
    of `tokens`. Nothing outlives its layer but the rows, the pass ends at the last
    layer asked for, and the model's head (the logits over the vocabulary) is not
    evaluated.

    Args:
        model: A model with `sdpa` attention, or with soft-capped logits.
        tokens: The text, as long as the longest length.
        question: What to measure.
        progress: Called with the number of layers done and their total.
        text: The name of the text.
        blocks: Where finished layers are kept and looked for.
        block: What this pass is called among them.

    Raises:
        UnsupportedModelError: The model's attention is not handled.
        NotFiniteError: The model computes a NaN or an infinity.
        ParityError: The model computes something else than its configuration says.
    """
    config = model.config.get_text_config()
    shape = ModelShape.of(model)
    heads = chosen(question.heads, shape.heads, "heads")
    wanted = chosen(question.layers, shape.layers, "layers")
    windows = {layer: documented_window(config, layer) for layer in wanted}
    for window in set(windows.values()):  # refuses before the model runs
        for n in question.lengths:
            question.prefixes(n, window, causal=reads_forward(model))
    done: dict[int, list[Row]] = {}

    def keep(layer: int, rows: list[Row]) -> None:
        done[layer] = rows
        if progress is not None:
            progress(len(done), len(wanted))

    def audit(record: LayerRecord) -> None:
        if record.layer in windows and record.layer in missing:
            if record.layer in done:
                raise UnsupportedModelError(
                    f"layer {record.layer} attends more than once"
                )
            rows = record_rows(record, question, heads, windows[record.layer], text)
            if blocks is not None:
                blocks.put(f"{block}layer-{record.layer}", rows)
            keep(record.layer, rows)
        if done.keys() >= missing:
            raise _Enough

    for layer in wanted:
        rows = None if blocks is None else blocks.get(f"{block}layer-{layer}")
        if rows is not None:
            keep(layer, rows)
    missing = set(wanted) - done.keys()
    if missing:
        with (
            torch.inference_mode(),
            before_rotary(model) as overheard,
            listening(model, audit, STREAMED, check_attention, overheard),
            contextlib.suppress(_Enough),
        ):
            ids = tokens[None].to(model.device)
            model.base_model(input_ids=ids, use_cache=False)
    if not missing <= done.keys():
        lost = ", ".join(str(layer) for layer in sorted(missing - done.keys()))
        raise UnsupportedModelError(
            f"{type(model).__name__} did not call the attention function in layers "
            f"{lost}"
        )
    return [row for layer in wanted for row in done[layer]]


def record_rows(
    record: LayerRecord,
    question: Question,
    heads: list[int],
    window: int | None,
    text: str,
) -> list[Row]:
    """Return one layer's rows at every length, after the check against the model."""
    check_finite(record)
    arrays = LayerArrays(
        record.query,
        record.key,
        record.value,
        record.scale,
        record.softcap,
        record.before,
    )

    def compared(
        output: Tensor, prefixes: Prefixes, found: Sequence[int]
    ) -> list[float]:
        return parity_errors(output, record, prefixes, found)

    return [
        row
        for n in question.lengths
        for row in layer_rows(
            arrays,
            question.prefixes(n, window, causal=record.causal),
            layer=record.layer,
            heads=heads,
            eps=question.eps,
            text=text,
            compared=compared,
            drawn=n == question.lengths[-1],
        )
    ]


def check_finite(record: LayerRecord) -> None:
    """Refuse a layer whose arrays hold a NaN or an infinity.

    Raises:
        NotFiniteError: One does.
    """
    for name in ("query", "key", "value", "output"):
        low, high = getattr(record, name).aminmax()
        if not (low.isfinite() and high.isfinite()):
            raise NotFiniteError(
                f"layer {record.layer}: its {name} holds a NaN or an infinity; the "
                "model's weights are damaged, or its precision is too low"
            )


def reads_forward(model: PreTrainedModel) -> bool:
    """Return whether a model is causal, by the account of its attention layers.

    Raises:
        UnsupportedModelError: Some of its layers are and others are not.
    """
    told = {
        bool(module.is_causal)
        for module in model.base_model.modules()
        if hasattr(module, "is_causal") and hasattr(module, "layer_idx")
    }
    if len(told) > 1:
        raise UnsupportedModelError(
            f"{type(model).__name__} has causal layers and others"
        )
    return told != {False}
