"""An attention function under a name of transformers' tables, for a block's length.

transformers looks attention functions and mask functions up by name; a name without a
mask function would silently get no mask.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import sdpa_mask

from largeprompt.errors import UnsupportedModelError


@contextlib.contextmanager
def registered(
    model: PreTrainedModel,
    name: str,
    attention: Callable[..., Any],
    mask: Callable[..., Any] = sdpa_mask,
    *,
    like_sdpa: bool = True,
) -> Iterator[None]:
    """Let a model use an attention function inside the block.

    The function it had before is restored at the end, whatever happens.

    Args:
        model: The model.
        name: The name, which no other block uses.
        attention: The attention function.
        mask: The mask function that belongs to it.
        like_sdpa: Whether to refuse a model that transformers does not run with `sdpa`.

    Raises:
        UnsupportedModelError: The model has no `sdpa` attention or cannot change its
            attention function.
    """
    before = model.config._attn_implementation or "sdpa"
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, mask)
    try:
        if like_sdpa:
            _set_attention(model, "sdpa")
        _set_attention(model, name)
        yield
    finally:
        model.set_attn_implementation(before)
        AttentionInterface._global_mapping.pop(name)  # no public way to unregister
        AttentionMaskInterface._global_mapping.pop(name)


def _set_attention(model: PreTrainedModel, name: str) -> None:
    try:
        model.set_attn_implementation(name)
    except ValueError as error:
        sinks = any(name.endswith("sinks") for name, _ in model.named_parameters())
        raise UnsupportedModelError(
            f"{type(model).__name__} does not support sdpa attention"
            + (" (it has learned sinks, which are not handled)" if sinks else "")
        ) from error
    if model.config._attn_implementation != name:
        raise UnsupportedModelError(
            f"{type(model).__name__} does not let its attention function be set"
        )
