"""One line for those who want it: inside a block, a model compresses its prompts."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn
from transformers import DynamicCache, PreTrainedModel

from largeprompt.hf.attention_cache import cache_attention
from largeprompt.hf.cache import LargePromptCache

NAMES = ("cache", "past_key_values")  # the argument, in later and earlier transformers


@contextlib.contextmanager
def compressed(
    model: PreTrainedModel, **settings: Any
) -> Iterator[Callable[[], LargePromptCache]]:
    """Let the model compress every prompt that it reads inside the block.

    Where `generate`, or a forward pass with `use_cache=True`, would start with a new
    `DynamicCache`, it starts with a new `LargePromptCache`. A cache that the caller
    passes stays the caller's. The model is as it was when the block ends, whatever
    happens.

        with largeprompt.compressed(model, budget=0.05) as new_cache:
            model.generate(**inputs)  # compressed
            model.generate(**inputs, cache=new_cache())  # the same, cache in hand

    Args:
        model: The model.
        **settings: What `LargePromptCache` takes: a budget at least.

    Yields:
        A function that returns a new cache with these settings.

    Raises:
        UnsupportedModelError: The model's attention cannot be compressed.
    """

    def new_cache() -> LargePromptCache:
        return LargePromptCache(model, **settings)

    def give(
        module: nn.Module, args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        name = next((name for name in NAMES if options.get(name) is not None), None)
        if name is not None and _is_fresh(options[name]):
            options = options | {name: new_cache()}
        elif name is None and options.get("use_cache"):
            options = options | {NAMES[0]: new_cache()}
        return args, options

    new_cache()  # refuses now what could only fail later
    with cache_attention(model), contextlib.ExitStack() as stack:
        stack.callback(model.register_forward_pre_hook(give, with_kwargs=True).remove)
        yield new_cache


def _is_fresh(cache: Any) -> bool:
    """Whether `generate` has just made this cache."""
    theirs = getattr(cache, "_is_user_defined", False)
    return type(cache) is DynamicCache and not theirs and cache.get_seq_length() == 0
