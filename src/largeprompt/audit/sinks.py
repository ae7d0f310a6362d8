r"""Which tokens serve as attention sinks: what a head reads whatever it is asked.

Xiao et al. (2023) found the first tokens of a text to draw weight from every query
[streamingllm:23]; a few others may, such as the first full stop.
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from largeprompt.audit.logits import Logits, centred
from largeprompt.audit.prefixes import FIRST, Prefixes

HEAVY = 0.05  # of the weight
EVEN_SHARES = 8  # times the share of a token if all weighed alike


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Sinks:
    """The sinks of the heads that read one key/value head.

    Attributes:
        tokens: Where they are in the text, in order.
        weight: The weight that each head gives each of them, or more, in most queries.
    """

    tokens: Int64[Tensor, " s"]
    weight: Float64[Tensor, "g s"]

    def seen(self, first: int, end: int) -> Int64[Tensor, " s"]:
        """Return those among the tokens from `first` up to `end`."""
        return self.tokens[(self.tokens >= first) & (self.tokens < end)]


def sinks(
    query: Float[Tensor, "g n k"],
    key: Float[Tensor, "n k"],
    prefixes: Prefixes,
    law: Logits,
) -> Sinks:
    r"""Return the tokens that a group of heads reads whatever it is asked.

    They are the first `FIRST` tokens of the text and every token with at least
    max(5%, 8 / n) of the weight in most of the queries of one of the heads.

    Args:
        query: The queries of the heads that read one key/value head.
        key: Its keys.
        prefixes: A few query positions, and what each sees.
        law: How a query and a key become a logit.
    """
    prefixes = prefixes.to(key.device)
    low, high = int(prefixes.first.min()), int(prefixes.final.max()) + 1
    rows = query[:, prefixes.positions].double().flatten(0, 1)[None]
    logits = centred(rows, key[None, low:high].double(), law)(slice(None))[0]
    seen = prefixes.visible(torch.arange(low, high, device=key.device))
    weights = logits.unflatten(0, (-1, len(seen))).masked_fill(~seen, -torch.inf)
    share = logits.new_zeros(len(query), high)
    share[:, low:] = weights.softmax(-1).median(1).values  # the lower one: most
    enough = max(HEAVY, EVEN_SHARES / int(prefixes.sizes.min()))
    serves = share.amax(0) >= enough
    serves[:FIRST] = True
    tokens = serves.nonzero().flatten()
    return Sinks(tokens, share[:, tokens])
