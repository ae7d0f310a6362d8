r"""Which KV heads stay whole: those whose compression costs the layer most.

What compression does to a model is carried by few heads. They look a token up wherever
it stands in the prompt, so that no part of the prompt can be dropped and recent queries
do not tell which tokens later ones will ask for. Their errors are rare and large, which
a mean square sees and a median does not.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.compact import Compact

DECAY = 0.5  # a head's mean-square error falls about as budget^-DECAY


def layer_costs(
    compact: Compact, exact: Answer, tilt: Float[Tensor, "b g m k"]
) -> Float[Tensor, " b"]:
    """Return each KV head's mean-square error over the layer's mean-square output.

    Args:
        compact: A layer, compressed.
        exact: What its tokens answer to the tilts.
        tilt: Queries that the method did not see, times the scale.
    """
    wrong = (compact.answer(tilt).output - exact.output).square().sum((1, 3)).mean(1)
    return wrong / exact.output.square().sum((0, 1, 3)).mean().clamp_min(1e-30)


def whole_heads(
    cost: Float[Tensor, " b"], tokens: Float[Tensor, " b"], share: float, floor: float
) -> Float[Tensor, " b"]:
    r"""Return a share for each head: 1 for some, the same for all others.

    Together they hold `share` of all tokens. With a set $W$ of the costliest heads
    whole the others keep a share $r$ and cost $(\mathrm{share}/r)^{1/2}$ times what
    they did; $W$ minimises that total.

    Args:
        cost: What each of the `b` heads costs when all keep the same share.
        tokens: How many tokens each has.
        share: The share of all tokens, in (0, 1).
        floor: The least share for a head that is not whole; at most `share`.

    Raises:
        ValueError: The share or the floor is out of its range.
    """
    if not 0 < share < 1 or not 0 < floor <= share:
        raise ValueError(
            "the share must be in (0, 1) and the floor above 0 and at most the share; "
            f"got {share} and {floor}"
        )
    total = float(tokens.sum())
    order = (cost / tokens).argsort(descending=True, stable=True)
    chosen, rest, least = 0, share, float(cost.sum())
    held, left = 0.0, least
    for k, head in enumerate(order.tolist()[:-1], start=1):
        held, left = held + float(tokens[head]), left - float(cost[head])
        remains = (share * total - held) / (total - held)
        if remains < floor:
            break
        price = left * (share / remains) ** DECAY
        if price < least:
            chosen, rest, least = k, remains, price
    shares = torch.full_like(tokens, rest, dtype=torch.float64)
    shares[order[:chosen]] = 1.0
    return shares
