"""How long an audit will take and how much memory, before it starts."""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from largeprompt.audit.checks import check_lengths
from largeprompt.audit.layer import LayerArrays, layer_rows
from largeprompt.audit.manifest import peak_rss_bytes
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.selection import chosen
from largeprompt.audit.statistics import ELEMENTS
from largeprompt.hf.capture import reads_forward
from largeprompt.hf.shapes import ModelShape
from largeprompt.hf.streamed import ROWS
from largeprompt.hf.windows import documented_window

PROBE = 512  # tokens of the forward pass that is timed
REPEATS = 2  # of which the faster counts: the first one warms up
PIECE_COPIES = 12  # arrays the size of a piece of logits alive at once
HIDDEN_COPIES = 8  # arrays the size of the hidden state alive at once


@final
@dataclasses.dataclass(frozen=True)
class Estimate:
    """The time an audit takes and the memory that the process will hold at its peak."""

    seconds: float
    peak_bytes: int


def estimate(
    model: PreTrainedModel,
    lengths: Sequence[int],
    *,
    queries: int = 32,
    layers: Sequence[int] | None = None,
    texts: int = 1,
) -> Estimate:
    """Estimate an audit from two short measurements on this machine.

    A forward pass over a few tokens gives the throughput of the model, the rows of one
    layer at the shortest and the longest length that of the audit; the one is scaled by
    its operation count, the other is linear in between. Right to about a factor of two
    while the machine's load stays what it is.

    Args:
        model: The model to audit, loaded.
        lengths: The lengths to audit.
        queries: Query positions at each length.
        layers: The layers to audit; every one when None.
        texts: How many texts.

    Raises:
        ValueError: A length is beyond the model's context, or a layer not in it.
    """
    shape = ModelShape.of(model)
    context = math.inf if shape.context is None else shape.context
    ordered = check_lengths(lengths, context, "the model's context")
    wanted = chosen(layers, shape.layers, "layers")
    longest, probe = ordered[-1], min(PROBE, ordered[-1])
    passes = [longest] if reads_forward(model) else ordered
    depth = (wanted[-1] + 1) / shape.layers  # where the pass ends
    work = sum(_operations(model, shape, n) for n in passes) * depth
    forward = work / _operations(model, shape, probe) * forward_seconds(model, probe)
    statistics = _statistics_seconds(model, shape, ordered, queries, wanted)
    return Estimate(
        seconds=texts * (forward + statistics),
        peak_bytes=peak_rss_bytes() + _working_bytes(model, shape, longest, probe),
    )


def _operations(model: PreTrainedModel, shape: ModelShape, n: int) -> float:
    """Multiply-adds of a forward pass over `n` tokens, without the model's head."""
    weights = _size(model.base_model) - _size(model.get_input_embeddings())
    config = model.config.get_text_config()
    pairs = 0
    for layer in range(shape.layers):
        window = documented_window(config, layer)
        # half of the pairs where attention is causal, two products a pair; a window
        # is read by blocks of rows
        pairs += n * (n if window is None else min(n, 2 * (window + ROWS)))
    return n * weights + pairs * shape.heads * shape.head_dim


def _size(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def forward_seconds(model: PreTrainedModel, n: int) -> float:
    """Measure a forward pass over `n` tokens."""
    tokens = torch.zeros(1, n, dtype=torch.long, device=model.device)
    with torch.inference_mode():
        return _fastest(lambda: model.base_model(input_ids=tokens, use_cache=False))


def _statistics_seconds(
    model: PreTrainedModel,
    shape: ModelShape,
    lengths: Sequence[int],
    queries: int,
    layers: Sequence[int],
) -> float:
    """Return what the rows of all layers take, from those of one at two lengths."""
    ends = [lengths[0], lengths[-1]]
    times = [layer_seconds(shape, n, queries) for n in ends]
    config = model.config.get_text_config()
    windows = [documented_window(config, layer) or math.inf for layer in layers]
    seen = [min(n, window) for n in lengths for window in windows]
    return float(np.interp(seen, ends, times).sum())


def layer_seconds(shape: ModelShape, n: int, queries: int) -> float:
    """Measure the rows of one layer at length `n`, after the law has been tabulated."""
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(shape.heads, n, shape.head_dim, generator=generator)
    key = torch.randn(shape.kv_heads, n, shape.head_dim, generator=generator)
    arrays = LayerArrays(query, key, key, shape.head_dim**-0.5, before=key)
    prefixes = Prefixes.last(n, queries, None)

    def rows() -> None:
        layer_rows(
            arrays,
            prefixes,
            layer=0,
            heads=range(shape.heads),
            eps=0.1,
            text="",
            compared=None,
        )

    return _fastest(rows)


def _fastest(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _working_bytes(
    model: PreTrainedModel, shape: ModelShape, n: int, probe: int
) -> int:
    """Return what a pass over `n` tokens holds beyond one over `probe`, measured."""
    token = (HIDDEN_COPIES * shape.hidden + 3 * shape.inner) * model.dtype.itemsize
    doubles = 8 * (2 * shape.head_dim * n + PIECE_COPIES * ELEMENTS)
    return (n - probe) * token + doubles
