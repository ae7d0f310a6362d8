"""Methods of compression that only keep tokens, and what the cache's tests share."""

import dataclasses
from typing import Any, final

import torch
from typing_extensions import override

from largeprompt.compress.compact import Atoms, Compact
from largeprompt.compress.prompt import Compressor
from largeprompt.hf.cache_budget import Share
from largeprompt.hf.cache_layer import FoldingLayer


@final
@dataclasses.dataclass(frozen=True)
class KeepAll(Compressor):
    """Every token stays, whatever the budget."""

    @override
    def compress(self, prompt, budget):
        return kept(prompt, torch.ones_like(prompt.valid))


@final
@dataclasses.dataclass(frozen=True)
class KeepEnds(Compressor):
    """The first tokens and the last ones, as many as the budget allows."""

    sinks: int = 2

    @override
    def compress(self, prompt, budget):
        n = prompt.key.shape[1]
        position = torch.arange(n)
        rows = []
        for tokens in budget.tolist():
            if tokens < self.sinks:
                raise ValueError(f"at least {self.sinks} tokens; got {tokens}")
            last = position >= n - (int(tokens) - self.sinks)
            rows.append((position < self.sinks) | last)
        return kept(prompt, torch.stack(rows))


def kept(prompt, rows):
    starts = torch.tensor([0, *rows.sum(-1).tolist()]).cumsum(0)
    return Compact(Atoms(prompt.key[rows], prompt.value[rows], starts), None)


EXACT: dict[str, Any] = {
    "method": KeepAll(),
    "budget": Share(0.5),
    "minimum_length": 20,
}
ENDS: dict[str, Any] = {
    "method": KeepEnds(),
    "budget": Share(0.3),
    "minimum_length": 20,
}
FEW: dict[str, Any] = ENDS | {"budget": Share(0.2)}


def changed(settings, **changes) -> dict[str, Any]:
    """The settings with some of them changed."""
    return settings | changes


def folding(cache) -> list[FoldingLayer]:
    """The layers of a cache that compress."""
    return [layer for layer in cache.layers if isinstance(layer, FoldingLayer)]


def held(layer, text=0) -> Any:
    """What a layer has kept of the first thing it compressed."""
    return layer.segments[text][0].held


def padded(prompts):
    """Prompts of several lengths as one batch, padding on the left, and its mask."""
    longest = max(len(prompt) for prompt in prompts)
    pads = [longest - len(prompt) for prompt in prompts]
    ids = [torch.cat([p.new_zeros(n), p]) for p, n in zip(prompts, pads, strict=True)]
    mask = [torch.arange(longest) >= n for n in pads]
    return torch.stack(ids), torch.stack(mask).long()
