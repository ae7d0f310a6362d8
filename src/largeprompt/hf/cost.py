"""How long an audit will take and how much memory, before it starts."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import final

import torch
from torch import nn
from transformers import PretrainedConfig, PreTrainedModel

from largeprompt.audit.arrays import check_lengths
from largeprompt.audit.manifest import peak_rss_bytes
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.statistics import BLOCK, query_statistics

PROBE = 256  # tokens of the forward pass that is timed
REPEATS = 2  # of which the faster counts: the first one warms up
SURFACE_SECONDS = 3.0  # to tabulate the exact law
ROW_SECONDS = 4e-3  # a head and length: the exact law, tokens needed, the verdict
BLOCK_COPIES = 12  # arrays the size of a block of logits alive at once
HIDDEN_COPIES = 8  # arrays the size of the hidden state alive at once


@final
@dataclasses.dataclass(frozen=True)
class Estimate:
    """The time an audit takes and the memory that the process will hold at its peak."""

    seconds: float
    peak_bytes: int


def estimate(
    model: PreTrainedModel, lengths: Sequence[int], *, queries: int = 32
) -> Estimate:
    """Estimate an audit from two short measurements on this machine.

    A forward pass over a few tokens gives the throughput of the model, one block of
    statistics at the longest length that of the audit; both are scaled by their
    operation counts. Right to about a factor of two on a machine that is not shared.

    Args:
        model: The model to audit, loaded.
        lengths: The lengths to audit.
        queries: Query positions at each length.

    Raises:
        ValueError: A length is beyond the model's context.
    """
    config = model.config.get_text_config()
    context = config.max_position_embeddings
    ordered = check_lengths(lengths, context, "the model's context")
    longest = ordered[-1]
    parameters = _size(model.base_model) - _size(model.get_input_embeddings())
    probe = min(PROBE, longest)
    throughput = _operations(config, parameters, probe) / forward_seconds(model, probe)
    forward = _operations(config, parameters, longest) / throughput
    groups = config.num_hidden_layers * _kv_heads(config)
    blocks = sum(ordered) / longest * block_seconds(config, longest, queries)
    heads = config.num_hidden_layers * config.num_attention_heads
    rows = SURFACE_SECONDS + ROW_SECONDS * heads * len(ordered)
    return Estimate(
        seconds=forward + groups * blocks + rows,
        peak_bytes=peak_rss_bytes() + _working_bytes(model, config, longest),
    )


def _size(module: nn.Module) -> int:
    return sum(weight.numel() for weight in module.parameters())


def _operations(config: PretrainedConfig, parameters: int, n: int) -> float:
    """Multiply-adds of a causal forward pass over `n` tokens, without the head."""
    width = config.num_attention_heads * _head_dim(config)
    return n * parameters + config.num_hidden_layers * n**2 * width


def forward_seconds(model: PreTrainedModel, n: int) -> float:
    """Measure a forward pass over `n` tokens."""
    tokens = torch.zeros(1, n, dtype=torch.long, device=model.device)
    with torch.inference_mode():
        return _fastest(lambda: model.base_model(input_ids=tokens, use_cache=False))


def block_seconds(config: PretrainedConfig, n: int, queries: int) -> float:
    """Measure the statistics of one key/value head at length `n`."""
    group = config.num_attention_heads // _kv_heads(config)
    query = torch.ones(group, n, _head_dim(config))
    key, prefixes = query[:1], Prefixes.last(n, queries, None)
    return _fastest(lambda: query_statistics(query, key, key, prefixes, scale=1.0))


def _fastest(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _working_bytes(model: PreTrainedModel, config: PretrainedConfig, n: int) -> int:
    hidden = HIDDEN_COPIES * n * config.hidden_size
    inner = 3 * n * (getattr(config, "intermediate_size", None) or config.hidden_size)
    sliding = getattr(config, "sliding_window", None) is not None
    mask = 5 * n**2 if sliding else 0  # the model's own: a byte, and float32 in sdpa
    group = config.num_attention_heads // _kv_heads(config)
    block = BLOCK_COPIES * 8 * group * BLOCK * n
    return (hidden + inner) * model.dtype.itemsize + mask + block


def _kv_heads(config: PretrainedConfig) -> int:
    return getattr(config, "num_key_value_heads", None) or config.num_attention_heads


def _head_dim(config: PretrainedConfig) -> int:
    return (
        getattr(config, "head_dim", None)
        or config.hidden_size // config.num_attention_heads
    )
