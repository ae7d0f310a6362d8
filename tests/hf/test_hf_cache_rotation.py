import pytest
import torch
from torch.testing import assert_close
from transformers import (
    CohereConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    PhiConfig,
)
from transformers.models.gemma3 import modeling_gemma3
from transformers.models.llama import modeling_llama
from transformers.models.qwen3 import modeling_qwen3

from largeprompt.hf.cache_rotation import rotation_of
from tests.hf.tiny import SHAPE, tiny_model

MODULES = {
    "llama": modeling_llama,
    "gemma3": modeling_gemma3,
    "qwen3": modeling_qwen3,
}
SCALED = {
    "llama3": {
        "rope_type": "llama3",
        "rope_theta": 5e3,
        "factor": 4.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 80,
    },
    "linear": {"rope_type": "linear", "rope_theta": 1e4, "factor": 3.0},
    "yarn": {
        "rope_type": "yarn",
        "rope_theta": 1e4,
        "factor": 4.0,
        "original_max_position_embeddings": 75,
    },
}


def rotated(model, module, query, position, layer):
    """The model's own rotary embedding of queries at one position."""
    where = torch.tensor([[position]])
    types = getattr(model.config, "layer_types", None)
    kinds = [types[layer]] if types and module is modeling_gemma3 else []
    cos, sin = model.model.rotary_emb(query, where, *kinds)
    return module.apply_rotary_pos_emb(query, query, cos, sin)[0]


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("name", MODULES)
def test_rotation_moves_queries_as_the_model_does(name, layer):
    model = tiny_model(name, torch.float64)
    query = torch.randn(
        1, 6, 1, 10, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    here = rotated(model, MODULES[name], query, 50, layer)
    there = rotated(model, MODULES[name], query, 137, layer)
    rotate = rotation_of(model, layer)
    assert rotate is not None
    float32 = torch.finfo(torch.float32).eps  # the model's angles are float32
    assert_close(rotate(here, 87), there, rtol=0, atol=200 * float32)
    assert not torch.allclose(rotate(here, 86), there, rtol=0, atol=1e-2)


@pytest.mark.parametrize("kind", SCALED)
def test_rotation_holds_for_scaled_frequencies(kind):
    config = LlamaConfig(**SHAPE, rope_parameters=SCALED[kind])
    model = tiny_model("llama", torch.float64, config)
    query = torch.ones(1, 6, 1, 10, dtype=torch.float64)
    rotate = rotation_of(model, 0)
    assert rotate is not None
    here = rotated(model, modeling_llama, query, 20, 0)
    there = rotated(model, modeling_llama, query, 61, 0)
    float32 = torch.finfo(torch.float32).eps
    assert_close(rotate(here, 41), there, rtol=0, atol=200 * float32)


def test_layers_of_two_types_rotate_at_their_own_frequencies():
    model = tiny_model("gemma3")
    query = torch.ones(1, 10)
    sliding, full = (rotation_of(model, layer) for layer in (0, 1))
    assert sliding is not None
    assert full is not None
    assert not torch.allclose(sliding(query, 5), full(query, 5))


def test_rotation_leaves_the_part_that_is_not_rotary_alone():
    shape = {key: value for key, value in SHAPE.items() if key != "head_dim"}
    shape |= {"hidden_size": 48, "partial_rotary_factor": 0.5}
    config = PhiConfig(**shape)
    rotate = rotation_of(tiny_model("phi", config=config), 0)
    assert rotate is not None
    query = torch.ones(1, 8)
    moved = rotate(query, 9)
    assert torch.equal(moved[:, 4:], query[:, 4:])
    assert not torch.allclose(moved[:, :4], query[:, :4])


def test_other_conventions_are_not_guessed():
    interleaved = tiny_model("cohere", config=CohereConfig(**SHAPE))
    assert rotation_of(interleaved, 0) is None
    learned = GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=9))
    assert rotation_of(learned, 0) is None
    dynamic = SCALED["linear"] | {"rope_type": "dynamic"}
    config = LlamaConfig(**SHAPE, rope_parameters=dynamic)
    assert rotation_of(tiny_model("llama", config=config), 0) is None
