"""Listen to a transformers model's attention without changing what it computes.

transformers looks attention functions and mask functions up by name. `recording`
registers one name in both tables for as long as its block lasts: transformers' own
`sdpa` functions, bit for bit, that also hand each layer's queries, keys and values to a
callback. A name without a mask function would silently get no mask.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from largeprompt.errors import UnsupportedModelError

# what attention may be told without changing softmax(scale q.k) v under a causal mask;
# the window is checked against the model's configuration by the parity of the outputs
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


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LayerRecord:
    """What one attention layer was given and what it answered, for one text.

    Queries and keys come after rotary embeddings and norms, keys and values before
    they are repeated over query heads. The tensors are on the CPU, and views of the
    model's own where it is there: copy what should last.
    """

    layer: int
    query: Float[Tensor, "h n k"]
    key: Float[Tensor, "hkv n k"]
    value: Float[Tensor, "hkv n v"]
    output: Float[Tensor, "h n v"]
    scale: float


Recorder = Callable[[LayerRecord], None]


@contextlib.contextmanager
def recording(model: PreTrainedModel, recorder: Recorder) -> Iterator[None]:
    """Call `recorder` once per attention layer of every forward pass in the block.

    The model's outputs stay bit-equal to those under `sdpa`. The attention function
    it had before is restored at the end, whatever happens.

    Raises:
        UnsupportedModelError: The model has no `sdpa` attention or cannot change its
            attention function; or, in the forward pass, a layer asks attention for
            something that is not causal softmax attention over one unpadded text.
    """

    def attention(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        **options: Any,
    ) -> tuple[Tensor, None]:
        check_supported(module, query, key, attention_mask, options)
        answer, _ = sdpa_attention_forward(
            module, query, key, value, attention_mask, **options
        )
        recorder(layer_record(module, query, key, value, answer, options))
        return answer, None

    name = f"largeprompt-recording-{id(attention):x}"
    before = model.config._attn_implementation or "sdpa"
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, sdpa_mask)
    try:
        _set_attention(model, "sdpa")  # refuses where the model does not support it
        _set_attention(model, name)
        yield
    finally:
        model.set_attn_implementation(before)
        AttentionInterface._global_mapping.pop(name)  # no public way to unregister
        AttentionMaskInterface._global_mapping.pop(name)


def layer_record(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    answer: Tensor,
    options: dict[str, Any],
) -> LayerRecord:
    """Return the record of one call, its batch of one text taken off."""
    scaling = options.get("scaling")
    return LayerRecord(
        layer=layer_index(module),
        query=query[0].cpu(),
        key=key[0].cpu(),
        value=value[0].cpu(),
        output=answer[0].transpose(0, 1).cpu(),
        scale=query.shape[-1] ** -0.5 if scaling is None else float(scaling),
    )


def check_supported(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    attention_mask: Tensor | None,
    options: dict[str, Any],
) -> None:
    """Refuse what causal softmax attention over one unpadded text does not explain."""
    layer = f"{type(module).__name__} of layer {layer_index(module)}"
    if options.get("is_causal") is False or not getattr(module, "is_causal", True):
        raise UnsupportedModelError(f"{layer} is not causal")
    if options.get("dropout"):
        raise UnsupportedModelError(f"{layer} drops weights out; call model.eval()")
    known = HARMLESS | {"dropout", "is_causal", "scaling"}
    extra = sorted(k for k, v in options.items() if k not in known and v is not None)
    if extra:
        raise UnsupportedModelError(
            f"{layer} passes {', '.join(extra)} to attention, which is not handled"
        )
    if query.shape[0] != 1:
        raise UnsupportedModelError(
            f"one text at a time is audited; got a batch of {query.shape[0]}"
        )
    if query.shape[2] != key.shape[2]:
        raise UnsupportedModelError(
            f"a text is audited in one pass; got {query.shape[2]} queries against "
            f"{key.shape[2]} keys"
        )
    if attention_mask is not None and not _every_token_sees_itself(attention_mask):
        raise UnsupportedModelError(f"{layer} has padding, or a mask of biases")


def layer_index(module: nn.Module) -> int:
    """Return the number of the layer that an attention module belongs to."""
    index = getattr(module, "layer_idx", None)
    if index is None:
        raise UnsupportedModelError(
            f"{type(module).__name__} does not say which layer it is"
        )
    return index


def _every_token_sees_itself(mask: Tensor) -> bool:
    return mask.dtype == torch.bool and bool(mask.diagonal(dim1=-2, dim2=-1).all())


def _set_attention(model: PreTrainedModel, name: str) -> None:
    try:
        model.set_attn_implementation(name)
    except ValueError as error:
        raise UnsupportedModelError(
            f"{type(model).__name__} does not support sdpa attention"
        ) from error
    if model.config._attn_implementation != name:
        raise UnsupportedModelError(
            f"{type(model).__name__} does not let its attention function be set"
        )
