"""Listen to a transformers model's attention without changing what it computes.

`listening` registers, for as long as its block lasts, transformers' own `sdpa`
functions, bit for bit, that also hand each layer's queries, keys and values to a
callback.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, final

from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from largeprompt.hf.checks import HARMLESS as HARMLESS
from largeprompt.hf.checks import Check, check_supported, is_causal, layer_index
from largeprompt.hf.padding import real_tokens
from largeprompt.hf.registered import registered
from largeprompt.hf.rotary import Overheard


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LayerRecord:
    r"""What one attention layer was given and what it answered, for one text.

    Queries and keys come after rotary embeddings and norms, keys and values before
    they are repeated over query heads. The tensors may be views of the model's own:
    copy what should last.

    Attributes:
        layer: The layer's number.
        query: The queries.
        key: The keys.
        value: The values.
        output: What the layer answered, before its output projection.
        scale: Factor of the inner products.
        text: The number of the text in its batch; its pads are no tokens.
        causal: Whether a token sees earlier tokens only.
        softcap: $c$ where the logits are $c \tanh(\text{scale}\, q \cdot k / c)$.
        before: The keys before rotary embedding, where that was asked for and is known.
    """

    layer: int
    query: Float[Tensor, "h n k"]
    key: Float[Tensor, "hkv n k"]
    value: Float[Tensor, "hkv n v"]
    output: Float[Tensor, "h n v"]
    scale: float
    text: int = 0
    causal: bool = True
    softcap: float | None = None
    before: Float[Tensor, "hkv n k"] | None = None

    def cpu(self) -> "LayerRecord":
        """Return the record on the CPU; the same tensors where they are there."""
        names = ("query", "key", "value", "output", "before")
        found = {name: getattr(self, name) for name in names}
        return dataclasses.replace(
            self, **{name: x.cpu() for name, x in found.items() if x is not None}
        )


Recorder = Callable[[LayerRecord], None]


@final
@dataclasses.dataclass(frozen=True)
class Implementation:
    """How attention is computed: an attention function and the mask it is given."""

    attention: Callable[..., tuple[Tensor, Any]]
    mask: Callable[..., Any]
    softcaps: bool  # whether it computes soft-capped logits, which sdpa does not


SDPA = Implementation(sdpa_attention_forward, sdpa_mask, softcaps=False)


@contextlib.contextmanager
def recording(model: PreTrainedModel, recorder: Recorder) -> Iterator[None]:
    """Call `recorder` once per attention layer of every forward pass in the block.

    The model's outputs stay bit-equal to those under `sdpa`; records are on the CPU.
    The attention function it had before is restored at the end, whatever happens.

    Raises:
        UnsupportedModelError: The model has no `sdpa` attention or cannot change its
            attention function; or, in the forward pass, a layer asks attention for
            something that is not causal softmax attention over one unpadded text.
    """
    with listening(model, lambda record: recorder(record.cpu()), SDPA, check_supported):
        yield


@contextlib.contextmanager
def listening(
    model: PreTrainedModel,
    recorder: Recorder,
    implementation: Implementation,
    check: Check,
    overheard: Overheard | None = None,
) -> Iterator[None]:
    """Call `recorder` once per attention layer and text of every forward pass.

    Records stay where the layer lives.

    Args:
        model: The model to listen to.
        recorder: Called with each record.
        implementation: How the model's attention is computed meanwhile.
        check: Refuses what the recorder does not handle.
        overheard: What `before_rotary` gave, where records hold keys before rotary.

    Raises:
        UnsupportedModelError: As in `recording`.
    """

    def attention(
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Any,
        **options: Any,
    ) -> tuple[Tensor, None]:
        check(module, query, key, attention_mask, options)
        answer, _ = implementation.attention(
            module, query, key, value, attention_mask, **options
        )
        before = None if overheard is None else overheard(key)
        for text, real in enumerate(real_tokens(attention_mask, query.shape[0])):
            one = (x[text : text + 1] for x in (query, key, value, answer))
            q, k, v, a = one
            if real is not None:
                q, k, v, a = q[:, :, real], k[:, :, real], v[:, :, real], a[:, real]
            record = layer_record(module, q, k, v, a, options, text)
            if before is not None:
                bare = before[text] if real is None else before[text][:, real]
                record = dataclasses.replace(record, before=bare)
            recorder(record)
        return answer, None

    name = f"largeprompt-recording-{id(attention):x}"
    like_sdpa = not (implementation.softcaps and _is_softcapped(model))
    with registered(model, name, attention, implementation.mask, like_sdpa=like_sdpa):
        yield


def layer_record(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    answer: Tensor,
    options: dict[str, Any],
    text: int = 0,
) -> LayerRecord:
    """Return the record of one call, its batch of one text taken off."""
    scaling = options.get("scaling")
    return LayerRecord(
        layer=layer_index(module),
        query=query[0],
        key=key[0],
        value=value[0],
        output=answer[0].transpose(0, 1),
        scale=query.shape[-1] ** -0.5 if scaling is None else float(scaling),
        text=text,
        causal=is_causal(module, options),
        softcap=options.get("softcap"),
    )


def _is_softcapped(model: PreTrainedModel) -> bool:
    config = model.config.get_text_config()
    return getattr(config, "attn_logit_softcapping", None) is not None
