"""Turn the exact tails of layers into segments, and measure what that costs."""

import time
from collections.abc import Sequence

import torch

from largeprompt.errors import CacheError
from largeprompt.hf.cache_budget import Tokens, whole
from largeprompt.hf.cache_error import held_out_error
from largeprompt.hf.cache_layer import Folding, FoldingLayer
from largeprompt.hf.cache_segments import segment
from largeprompt.hf.cache_tail import Tail


@torch.no_grad()
def compress_together(layers: Sequence[FoldingLayer], folding: Folding) -> None:
    """Compress the tails of some layers, those that are long enough.

    One layer after another is folded, so that memory falls as it goes.

    Args:
        layers: Layers that have read the same positions.
        folding: How they compress.

    Raises:
        CacheError: The budget is too small for the method, or no query was heard.
        UnsupportedModelError: A text has padding elsewhere than on its left.
    """
    start = time.perf_counter()
    ripe = [layer for layer in layers if layer.tail_length >= layer.shortest]
    if not ripe:
        return
    tails = [tail for layer in ripe for tail in layer.texts()]
    try:
        tokens = _tokens(tails, folding, ripe[0].shortest)
        texts = len(tails) // len(ripe)
        tails.clear()  # they hold the keys of layers that are folded
        deciding = (time.perf_counter() - start) / len(ripe)
        for index, layer in enumerate(ripe):
            _fold(layer, folding, tokens[texts * index : texts * (index + 1)], deciding)
    except ValueError as error:
        raise CacheError(
            f"the budget is too small for a prompt of {layers[0].tail_length} tokens: "
            f"{error}"
        ) from error


def _fold(
    layer: FoldingLayer, folding: Folding, tokens: list[Tokens], seconds: float
) -> None:
    start = time.perf_counter()
    segments, errors = [], list[float]()
    for tail, allowed in zip(layer.texts(), tokens, strict=True):
        part = segment(folding.method, tail.prompt, allowed, folding.kernel)
        segments.append(part)
        errors += held_out_error(part, tail).flatten().tolist()
    layer.fold(segments, errors, seconds + time.perf_counter() - start)


def _tokens(tails: list[Tail], folding: Folding, shortest: float) -> list[Tokens]:
    """Ask the budget for the texts that are long enough; the others stay exact."""
    tokens = [whole(tail) for tail in tails]
    long = [i for i, tail in enumerate(tails) if tail.prompt.key.shape[1] >= shortest]
    given = folding.budget.tokens([tails[i] for i in long], folding.method)
    for i, allowed in zip(long, given, strict=True):
        tokens[i] = allowed
    return tokens
