"""What attention may be asked for: everything else is refused by name."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from largeprompt.errors import UnsupportedModelError

# what attention may be told without changing softmax(scale q.k) v under its mask; the
# window is checked against the model's configuration by the parity of the outputs
HARMLESS = frozenset(
    {
        "cache_position",
        "output_attentions",
        "output_hidden_states",
        "position_embeddings",
        "position_ids",
        "return_dict",
        "sliding_window",
        "use_cache",
    }
)
HANDLED = frozenset({"deterministic", "dropout", "is_causal", "scaling", "softcap"})
WORDS = {
    "position_bias": "biases of positions (position_bias)",
    "s_aux": "learned sinks (s_aux)",
    "softcap": "soft-capped logits (softcap)",
}

Check = Callable[[nn.Module, Tensor, Tensor, Any, dict[str, Any]], None]


def check_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    attention_mask: Any,
    options: dict[str, Any],
) -> None:
    """Refuse what softmax attention of a text to itself does not explain.

    Causal or both ways, soft-capped logits, batches and padding are fine.
    """
    layer = f"{type(module).__name__} of layer {layer_index(module)}"
    if options.get("dropout"):
        raise UnsupportedModelError(f"{layer} drops weights out; call model.eval()")
    known = HARMLESS | HANDLED
    extra = sorted(k for k, v in options.items() if k not in known and v is not None)
    if extra:
        named = ", ".join(WORDS.get(name, name) for name in extra)
        raise UnsupportedModelError(
            f"{layer} passes {named} to attention, which is not handled"
        )
    if query.shape[2] != key.shape[2]:
        raise UnsupportedModelError(
            f"a text is audited in one pass; got {query.shape[2]} queries against "
            f"{key.shape[2]} keys"
        )
    if isinstance(attention_mask, Tensor) and attention_mask.dtype != torch.bool:
        raise UnsupportedModelError(f"{layer} has padding, or a mask of biases")


def check_supported(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    attention_mask: Any,
    options: dict[str, Any],
) -> None:
    """Refuse what causal softmax attention over one unpadded text does not explain."""
    layer = f"{type(module).__name__} of layer {layer_index(module)}"
    if not is_causal(module, options):
        raise UnsupportedModelError(f"{layer} is not causal")
    if options.get("softcap") is not None:
        raise UnsupportedModelError(
            f"{layer} passes {WORDS['softcap']} to attention, which is not handled"
        )
    if query.shape[0] != 1:
        raise UnsupportedModelError(
            f"one text at a time is audited; got a batch of {query.shape[0]}"
        )
    check_attention(module, query, key, attention_mask, options)
    if isinstance(attention_mask, Tensor) and not bool(
        attention_mask.diagonal(dim1=-2, dim2=-1).all()
    ):
        raise UnsupportedModelError(f"{layer} has padding, or a mask of biases")


def is_causal(module: nn.Module, options: dict[str, Any]) -> bool:
    """Whether a layer's tokens see earlier tokens only, by its own account."""
    told = options.get("is_causal")
    return bool(getattr(module, "is_causal", True) if told is None else told)


def layer_index(module: nn.Module) -> int:
    """Return the number of the layer that an attention module belongs to."""
    index = getattr(module, "layer_idx", None)
    if index is None:
        raise UnsupportedModelError(
            f"{type(module).__name__} does not say which layer it is"
        )
    return index
