"""The attention function that lets a cache hear the queries and answer them.

transformers hands a cache keys and values, never queries. `cache_attention` registers
an attention function that finds the cache's layer behind the keys it gets. Where there
is none, or where the layer has folded nothing yet, it is transformers' own `sdpa`, bit
for bit.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from largeprompt.errors import UnsupportedModelError
from largeprompt.hf.cache_build import compress_together
from largeprompt.hf.cache_layer import OWNER, FoldingLayer
from largeprompt.hf.checks import HARMLESS
from largeprompt.hf.registered import registered

NAME = "largeprompt-cache"
HANDLED = HARMLESS | {"dropout", "is_causal", "scaling"}


@contextlib.contextmanager
def cache_attention(model: PreTrainedModel) -> Iterator[None]:
    """Let the model's attention work with a `LargePromptCache` inside the block.

    Without such a cache the model's outputs stay bit-equal to those under `sdpa`. The
    attention function it had before is restored at the end, whatever happens.

    Raises:
        UnsupportedModelError: The model has no `sdpa` attention or cannot change its
            attention function.
    """
    name = f"{NAME}-{id(model):x}"
    if model.config._attn_implementation == name:  # an outer block has done it
        yield
        return
    with registered(model, name, attention):
        yield


def is_listening(config: PretrainedConfig) -> bool:
    """Whether the model of this configuration uses the registered attention now."""
    return str(config._attn_implementation).startswith(NAME)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attend as transformers asks, to whatever stands behind the keys."""
    layer: FoldingLayer | None = getattr(key, OWNER, None)
    if layer is None:
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, **options
        )
    _check_supported(module, options)
    scaling = options.get("scaling")
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    layer.hear(query, attention_mask, scale)
    if layer.segments:
        return layer.attend(query, attention_mask, scale), None
    answer = sdpa_attention_forward(
        module, query, key, value, attention_mask, **options
    )
    if layer.get_seq_length() == layer.folding.prompt_length:
        compress_together([layer], layer.folding)
    return answer


def _check_supported(module: nn.Module, options: dict[str, Any]) -> None:
    """Refuse what softmax(scale q.k) v under a causal mask does not explain."""
    name = type(module).__name__
    if options.get("is_causal") is False or not getattr(module, "is_causal", True):
        raise UnsupportedModelError(f"{name} is not causal")
    if options.get("dropout"):
        raise UnsupportedModelError(f"{name} drops weights out; call model.eval()")
    if options.get("sliding_window") is not None:
        raise UnsupportedModelError(
            f"{name} has a sliding window where the configuration promises none"
        )
    extra = sorted(k for k, v in options.items() if k not in HANDLED and v is not None)
    if extra:
        raise UnsupportedModelError(
            f"{name} passes {', '.join(extra)} to attention, which is not handled"
        )
