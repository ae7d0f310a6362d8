"""How many tokens a budget holds, and the atoms that are kept of them."""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from largeprompt.compress.compact import Atoms
from largeprompt.compress.prompt import LayerPrompt

INDEX = torch.int64.itemsize


def token_bytes(prompt: LayerPrompt) -> int:
    """Return what one token of the prompt weighs: a key and a value."""
    numbers = prompt.key.shape[-1] + prompt.value.shape[-1]
    return numbers * prompt.key.element_size()


def tokens_kept(
    prompt: LayerPrompt,
    budget: Float[Tensor, " b"],
    *,
    least: int,
    reserved: float = 0.0,
) -> Int64[Tensor, " b"]:
    """Return how many atoms each KV head may keep, its share of the index counted.

    Args:
        prompt: The layer's prompt.
        budget: What each head may hold, in tokens; a head whose budget is at least its
            number of tokens keeps them all.
        least: The number of atoms that the method always keeps.
        reserved: Bytes of the budget that each head needs for something else.

    Raises:
        ValueError: A head that is not kept whole has no room for `least` atoms.
    """
    heads = len(prompt.key)
    if len(budget) != heads:
        raise ValueError(
            f"budget must have one entry for each of {heads} KV heads; "
            f"got {len(budget)}"
        )
    total = prompt.valid.sum(-1)
    index = INDEX * (heads + 1) / heads
    room = budget.double() - (index + reserved) / token_bytes(prompt)
    kept = torch.where(budget >= total, total, room.floor().long())
    if bool((kept < total.clamp(max=least)).any()):
        raise ValueError(
            f"the budget must hold {least} tokens besides {reserved:.0f} bytes; "
            f"got {float(budget.min()):.1f} tokens of {token_bytes(prompt)} bytes"
        )
    return torch.minimum(kept, total)


def sinks_and_window(
    valid: Bool[Tensor, "b n"], sinks: int, window: int
) -> Bool[Tensor, "b n"]:
    """Return the first `sinks` and the last `window` tokens; padding is no token."""
    order = valid.long().cumsum(-1)
    return valid & ((order <= sinks) | (order > order[:, -1:] - window))


def highest(
    scores: Float[Tensor, "b n"],
    valid: Bool[Tensor, "b n"],
    always: Bool[Tensor, "b n"],
    count: Int64[Tensor, " b"],
) -> Bool[Tensor, "b n"]:
    """Return `count` tokens for each head: those in `always`, then by score.

    Where the scores tie, the earlier token goes first.
    """
    ranked = scores.float().masked_fill(always, torch.inf)
    ranked = ranked.masked_fill(~valid, -torch.inf)
    order = ranked.sort(dim=-1, descending=True, stable=True).indices
    place = torch.empty_like(order).scatter_(
        -1, order, torch.arange(order.shape[-1], device=order.device).expand_as(order)
    )
    return (place < count[:, None]) & valid


def atoms_of(prompt: LayerPrompt, kept: Bool[Tensor, "b n"]) -> Atoms:
    """Return the kept tokens of each head, in the order of the prompt."""
    counts = kept.sum(-1)
    starts = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return Atoms(prompt.key[kept], prompt.value[kept], starts)
