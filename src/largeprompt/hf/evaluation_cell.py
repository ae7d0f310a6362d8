"""One method at one budget on one text: head errors, distributions, bytes, times."""

import dataclasses
import statistics
import time
from typing import Any, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel

from largeprompt.compress.baselines import FeatureMap, mapped
from largeprompt.compress.compact import Compact
from largeprompt.errors import CacheError
from largeprompt.hf.attention_cache import cache_attention
from largeprompt.hf.cache import LargePromptCache
from largeprompt.hf.cache_layer import FoldingLayer
from largeprompt.hf.evaluation_distance import Distance, distance
from largeprompt.hf.evaluation_errors import (
    Summary,
    head_bytes,
    median_over_queries,
    relative_errors,
)
from largeprompt.hf.evaluation_methods import Method, cache_settings
from largeprompt.hf.evaluation_reading import Reading, fill, next_logits

EXACT = "exact"
STEPS = 8  # single-token passes that are timed, after one that is not


@final
@dataclasses.dataclass(frozen=True)
class Cell:
    """What one method did at one budget on one text.

    Attributes:
        summary: The row of summary.json, but for the text's name.
        errors: The rows of errors.parquet, but for the text's name; none for the exact
            cache.
    """

    summary: dict[str, Any]
    errors: list[dict[str, Any]]


def exact_cell(model: PreTrainedModel, reading: Reading) -> Cell:
    """Return what the exact cache does: the row that all others are compared with."""
    with cache_attention(model):
        cache = _exact(model, reading)
        held = float(sum(_bytes_of(layer) for layer in cache.layers))
        logits = next_logits(model, cache, reading.continuation)
        found = distance(reading.log_probabilities, logits, reading.continuation)
        again = _exact(model, reading)
        milliseconds = decode_ms(model, again, reading.continuation)
    summary = _summary(EXACT, 1.0, found, 0.0, 0.0, held, 0.0, milliseconds)
    return Cell(summary, [])


def compressed_cell(
    model: PreTrainedModel,
    reading: Reading,
    name: str,
    method: Method,
    budget: float,
    error_queries: int,
) -> Cell:
    """Compress the prompt of a reading, then go on with its continuation.

    Args:
        model: The model.
        reading: What the exact model did.
        name: What the method is called.
        method: The method; a feature map is measured by its head errors alone.
        budget: The share of the bytes of each KV head's keys and values.
        error_queries: The head errors are medians over so many queries, the first of
            the continuation and its last.

    Raises:
        CacheError: The budget is too small for the method.
    """
    if isinstance(method, FeatureMap):
        start = time.perf_counter()
        summaries = _mapped(model, reading, name, method, budget)
        seconds = time.perf_counter() - start
        found, milliseconds = None, None
    else:
        with cache_attention(model):
            settings = cache_settings(method, budget)
            cache = LargePromptCache(model, minimum_length=1, **settings)
            fill(cache, reading, model.device)
            try:
                cache.compress()
            except CacheError as error:
                raise CacheError(f"{name}: {error}") from error
            summaries, seconds = _compacts(cache), cache.report().seconds
            milliseconds = decode_ms(model, cache.clone(), reading.continuation)
            logits = next_logits(model, cache, reading.continuation)
            found = distance(reading.log_probabilities, logits, reading.continuation)
    held = float(sum(summary.nbytes for summary in summaries.values()))
    rows = [
        row
        for layer, summary in summaries.items()
        for row in _error_rows(reading, layer, summary, error_queries)
    ]
    rows = [{"method": name, "budget": budget, **row} for row in rows]
    return Cell(
        _summary(
            name,
            budget,
            found,
            statistics.fmean(row["error"] for row in rows),
            statistics.fmean(row["late_error"] for row in rows),
            held,
            seconds,
            milliseconds,
        ),
        rows,
    )


def decode_ms(
    model: PreTrainedModel, cache: Cache, tokens: Int64[Tensor, " m"]
) -> float:
    """Return the median milliseconds of passes of a single token, the first left out.

    The cache takes the tokens in.
    """
    times = []
    for token in tokens[: STEPS + 1].split(1):
        start = time.perf_counter()
        next_logits(model, cache, token).argmax(-1).cpu()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[1:] or times)


def _exact(model: PreTrainedModel, reading: Reading) -> Cache:
    """Return transformers' own cache, filled with the prompt."""
    cache = DynamicCache(config=model.config.get_text_config(decoder=True))
    fill(cache, reading, model.device)
    return cache


def _compacts(cache: LargePromptCache) -> dict[int, Summary]:
    """Return what each full-attention layer of a compressed cache holds."""
    found: dict[int, Summary] = {}
    for index, layer in enumerate(cache.layers):
        if isinstance(layer, FoldingLayer):
            held = layer.segments[0][0].held
            assert isinstance(held, Compact), "a compressor leaves atoms and sets"
            found[index] = held
    return found


def _mapped(
    model: PreTrainedModel,
    reading: Reading,
    name: str,
    method: FeatureMap,
    budget: float,
) -> dict[int, Summary]:
    """Map every full-attention layer."""
    layers = LargePromptCache(model, budget=budget).layers
    full = [i for i, layer in enumerate(layers) if isinstance(layer, FoldingLayer)]
    tokens = torch.full((len(reading.layers[full[0]].key),), budget * reading.prompt)
    try:
        return {
            index: mapped(method, reading.layer_prompt(model, index), tokens)
            for index in full
        }
    except ValueError as error:
        raise CacheError(
            f"{name}: {budget:.3g} is too small a budget: {error}"
        ) from error


def _error_rows(
    reading: Reading, layer: int, summary: Summary, queries: int
) -> list[dict[str, Any]]:
    errors: Float[Tensor, "h m"] = relative_errors(reading, layer, summary)
    heads = len(reading.layers[layer].key)
    soon = median_over_queries(errors[:, :queries], heads).tolist()
    late = median_over_queries(errors[:, -queries:], heads).tolist()
    held = head_bytes(summary, heads)
    return [
        {
            "layer": layer,
            "kv_head": head,
            "error": soon[head],
            "late_error": late[head],
            "bytes": held[head],
        }
        for head in range(heads)
    ]


def _summary(
    name: str,
    budget: float,
    found: Distance | None,
    error: float,
    late: float,
    held: float,
    seconds: float,
    milliseconds: float | None,
) -> dict[str, Any]:
    return {
        "method": name,
        "budget": budget,
        "mean_error": error,
        "late_error": late,
        "kl": None if found is None else found.kl,
        "top1": None if found is None else found.top1,
        "nll": None if found is None else found.nll,
        "accuracy": None if found is None else found.accuracy,
        "bytes": held,
        "ms_per_token": milliseconds,
        "build_s": seconds,
    }


def _bytes_of(layer: Any) -> int:
    """Return what a layer holds of the prompt; sliding layers are not compressed."""
    return 0 if layer.is_sliding else layer.keys.nbytes + layer.values.nbytes
