import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

from largeprompt.errors import CacheError, UnsupportedModelError
from largeprompt.hf import LargePromptCache, cache_attention
from largeprompt.hf.cache_budget import Share
from tests.hf.keeping import ENDS, KeepAll, changed
from tests.hf.tiny import tiny_model, tokens


def test_unsupported_models_are_refused_by_name():
    with pytest.raises(UnsupportedModelError, match="MistralForCausalLM has full"):
        LargePromptCache(tiny_model("mistral"), budget=0.1)
    t5 = T5ForConditionalGeneration(
        T5Config(d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, vocab_size=9)
    )
    with pytest.raises(UnsupportedModelError, match="T5ForConditionalGeneration"):
        LargePromptCache(t5, budget=0.1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": 0.0}, "budget must be positive; got 0"),
        ({"budget": float("nan")}, "budget must be positive; got nan"),
        ({}, "a budget or an error is needed"),
        ({"budget": 0.1, "error": 0.1}, "not both; got 0.1 and 0.1"),
        ({"error": -0.1}, "error must be positive"),
        ({"error": 0.1, "mode": "indexed"}, "takes a budget"),
        ({"budget": 0.1, "queries": 0}, "queries must be positive"),
        ({"budget": 0.1, "tail_limit": -1}, "tail_limit must be positive"),
        ({"budget": 0.1, "mode": "sparse"}, "compact or indexed; got sparse"),
        ({"budget": 0.1, "mode": "indexed", "method": KeepAll()}, "another method"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        LargePromptCache(tiny_model("llama"), **settings)


def test_budget_that_is_too_small_for_the_method_says_so():
    model, ids = tiny_model("llama"), tokens(64)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **changed(ENDS, budget=Share(0.01)))
        model(ids, cache=cache)
        with pytest.raises(
            CacheError, match="too small for a prompt of 64 tokens: at least 2"
        ):
            cache.compress()
