"""Run a model with the bulk of chosen heads' prompts replaced by its linear limit."""

import contextlib
from collections.abc import Collection, Iterator
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from largeprompt.hf.ablation_limit import Replacement, replaced_attention
from largeprompt.hf.checks import check_supported, layer_index
from largeprompt.hf.registered import registered
from largeprompt.hf.windows import documented_window

HeadName = tuple[int, int]
"""A head: its layer and its number in the layer, both from 0."""


@contextlib.contextmanager
def ablated(
    model: PreTrainedModel, heads: Collection[HeadName], replacement: Replacement
) -> Iterator[None]:
    """Replace the attention of `heads` in every forward pass of the block.

    The other heads are transformers' own `sdpa`, bit for bit. The attention function
    that the model had before is restored at the end, whatever happens.

    Args:
        model: A decoder with `sdpa` attention.
        heads: The heads whose bulk is replaced.
        replacement: What stays exact and how the rest answers.

    Raises:
        UnsupportedModelError: The model has no `sdpa` attention, or, in the forward
            pass, a layer is not causal softmax attention over one unpadded text.
    """
    chosen: dict[int, list[int]] = {}
    for layer, head in sorted(heads):
        chosen.setdefault(layer, []).append(head)
    config = model.config.get_text_config()

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
        layer, scaling = layer_index(module), options.get("scaling")
        scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
        sliding = documented_window(config, layer)
        group = query.shape[1] // key.shape[1]
        for kv in range(key.shape[1]):
            mine = [head for head in chosen.get(layer, []) if head // group == kv]
            if mine:
                output = replaced_attention(
                    query[0, mine],
                    key[0, kv],
                    value[0, kv],
                    replacement,
                    scale=scale,
                    sliding=sliding,
                )
                answer[0, :, mine] = output.transpose(0, 1).to(answer)
        return answer, None

    name = f"largeprompt-ablated-{id(attention):x}"
    with registered(model, name, attention):
        yield
