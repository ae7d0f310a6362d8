"""Tiny random models of many architectures: decoders and encoders."""

from typing import Any

import torch
from transformers import (
    AutoModel,
    BertConfig,
    Gemma2Config,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    ModernBertConfig,
    PhiConfig,
)

from tests.hf.tiny import CONFIGS, SHAPE

ENCODER: dict[str, Any] = {
    **{name: size for name, size in SHAPE.items() if name != "head_dim"},
    "num_key_value_heads": 6,
    "hidden_size": 48,
    "pad_token_id": 0,
}
DECODER: dict[str, Any] = {**ENCODER, "pad_token_id": None}
WINDOWED: dict[str, Any] = {
    **ENCODER,
    "local_attention": 24,
    "global_attn_every_n_layers": 3,
    "cls_token_id": None,
    "sep_token_id": None,
}
SPECIAL: dict[str, Any] = {
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}

DECODERS = {
    **CONFIGS,
    "one key/value head": LlamaConfig(**{**SHAPE, "num_key_value_heads": 1}),
    "gpt2": GPT2Config(
        n_embd=36,
        n_inner=44,
        n_layer=3,
        n_head=6,
        vocab_size=256,
        n_positions=300,
        **SPECIAL,
    ),
    "gpt_neox": GPTNeoXConfig(**DECODER),
    "phi": PhiConfig(**DECODER),
}
SOFTCAPPED = Gemma2Config(
    **SHAPE,
    sliding_window=24,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    attn_logit_softcapping=1.5,
)
ENCODERS = {
    "bert": BertConfig(**ENCODER),
    "modernbert": ModernBertConfig(
        **WINDOWED,
    ),
}
EVERY = {**DECODERS, "gemma2": SOFTCAPPED, **ENCODERS}


def tiny_base(config, dtype=torch.float32):
    """A model without a head whose attention is neither uniform nor frozen."""
    model = AutoModel.from_config(config, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(std=0.25, generator=generator)
    return model.to(dtype)
