"""A byte budget that keeps whole the few heads that cannot do with less."""

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from typing_extensions import override

from largeprompt.compress.indexing import ClusterIndex
from largeprompt.compress.whole_heads import layer_costs, whole_heads
from largeprompt.hf.cache_answer import exact_answer
from largeprompt.hf.cache_budget import Budget, Tokens, whole
from largeprompt.hf.cache_segments import Method
from largeprompt.hf.cache_tail import Tail


@final
@dataclasses.dataclass(frozen=True)
class WholeHeads(Budget):
    """A share of all tails together: some KV heads whole, the rest alike.

    Every tail is compressed once at the mean share, and asked by its held-out queries
    (`compress.whole_heads`). Where layers are compressed one at a time, each spends
    its own share.

    Attributes:
        share: The mean share, in (0, 1).
        floor: The least that compressed heads keep, over the mean share.
    """

    share: float
    floor: float = 0.4

    @override
    def tokens(self, tails: Sequence[Tail], method: Method) -> list[Tokens]:
        assert not isinstance(method, ClusterIndex), "an index drops nothing"
        costs, least = [], 0.0
        for tail in tails:
            prompt = tail.prompt
            exact = exact_answer(tail.held_out, prompt.key, prompt.value)
            compact = method.compress(prompt, self.share * whole(tail))
            costs.append(layer_costs(compact, exact, tail.held_out))
            least = max(least, method.least(prompt) / prompt.key.shape[1])
        tokens = torch.cat([whole(tail) for tail in tails])
        floor = min(max(self.floor * self.share, least), self.share)
        shares = whole_heads(torch.cat(costs).to(tokens), tokens, self.share, floor)
        return list((shares * tokens).split([len(cost) for cost in costs]))
