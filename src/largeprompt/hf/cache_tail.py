"""The exact tail of a layer, text by text, as a method of compression is given it."""

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from largeprompt.compress.prompt import LayerPrompt, Rotation
from largeprompt.errors import UnsupportedModelError

HELD_OUT = 16  # queries that no method sees


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Tail:
    """The exact tail of one text, its padding taken off.

    Attributes:
        prompt: What a method of compression is given.
        held_out: Tilts of queries older than those in the prompt, moved to the end of
            the tail where the model's positions are rotary; none for a single token.
    """

    prompt: LayerPrompt
    held_out: Float[Tensor, "b g m k"]


def tails(
    key: Float[Tensor, "t h n k"],
    value: Float[Tensor, "t h n v"],
    query: Float[Tensor, "t hq w k"],
    valid: Bool[Tensor, "t n"] | None,
    scale: float,
    rotate: Rotation | None,
) -> list[Tail]:
    """Take `t` texts apart.

    Args:
        key: The keys of the tail.
        value: Its values.
        query: Its last queries.
        valid: Which positions are tokens; None is all.
        scale: Logits are `scale * query . key`.
        rotate: How queries move to later positions.

    Raises:
        UnsupportedModelError: A text has padding elsewhere than on its left.
    """
    if valid is None:
        valid = torch.ones(len(key), key.shape[2], dtype=torch.bool)
    if not bool((valid[:, 1:] >= valid[:, :-1]).all() and valid[:, -1].all()):
        raise UnsupportedModelError("padding must be on the left of the prompt")
    found = []
    for text, n in enumerate(valid.sum(-1).tolist()):
        last = query[text, :, -n:].unflatten(0, (key.shape[1], -1))
        older, newest = _apart(last)
        if rotate is not None:
            older = rotate(older, last.shape[2])
        prompt = LayerPrompt(
            key=key[text, :, -n:],
            value=value[text, :, -n:],
            valid=torch.ones(key.shape[1], n, dtype=torch.bool, device=key.device),
            query=newest,
            scale=scale,
            rotate=rotate,
        )
        found.append(Tail(prompt, scale * older))
    return found


def _apart(
    query: Float[Tensor, "h g w k"],
) -> tuple[Float[Tensor, "h g o k"], Float[Tensor, "h g u k"]]:
    """Split queries into those held out, at most half, and the newer ones."""
    w = query.shape[2]
    held_out = min(HELD_OUT, w // 2)
    older, newest = query.split([held_out, w - held_out], 2)
    return older.to(torch.promote_types(older.dtype, torch.float32)), newest
