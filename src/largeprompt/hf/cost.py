"""How long an audit will take and how much memory, before it starts."""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import final

import torch
from torch import nn
from transformers import PreTrainedModel

from largeprompt.audit.checks import check_lengths
from largeprompt.audit.curves import layer_curves
from largeprompt.audit.logits import Logits
from largeprompt.audit.manifest import peak_rss_bytes
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.selection import chosen
from largeprompt.audit.statistics import ELEMENTS, query_statistics
from largeprompt.hf.capture import reads_forward
from largeprompt.hf.shapes import ModelShape
from largeprompt.hf.streamed import ROWS
from largeprompt.hf.windows import documented_window

PROBE = 512  # tokens of the forward pass that is timed
REPEATS = 2  # of which the faster counts: the first one warms up
SURFACE_SECONDS = 3.0  # to tabulate the exact law and its drift
LAYER_SECONDS = 0.02  # a layer and length: the exact law, tokens needed, verdicts
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

    A forward pass over a few tokens gives the throughput of the model, one block of
    statistics at the longest length that of the audit; both are scaled by their
    operation counts. Right to about a factor of two while the machine's load stays
    what it is.

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
    blocks = sum(ordered) / longest * layer_seconds(shape, longest, queries)
    rows = LAYER_SECONDS * len(wanted) * len(ordered)
    return Estimate(
        seconds=SURFACE_SECONDS + texts * (forward + len(wanted) * blocks + rows),
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


def layer_seconds(shape: ModelShape, n: int, queries: int) -> float:
    """Measure the statistics of one layer at length `n`."""
    query = torch.ones(shape.heads, n, shape.head_dim)
    key, prefixes = query[: shape.kv_heads], Prefixes.last(n, queries, None)

    def statistics() -> None:
        found = query_statistics(query, key, key, prefixes, scale=1.0)
        layer_curves(query, key, key, prefixes, found, Logits(1.0, None))

    return _fastest(statistics)


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
