import pytest
import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache

import largeprompt
from largeprompt.errors import UnsupportedModelError
from largeprompt.hf import LargePromptCache, cache_attention, compressed
from tests.hf.keeping import FEW, KeepAll
from tests.hf.tiny import tiny_model, tokens

NAMES = ["llama", "gemma3", "qwen3"]
OPTIONS = {"max_new_tokens": 5, "do_sample": False, "pad_token_id": 0}


def state(model):
    hooks = len(model._forward_pre_hooks)
    names = set(AttentionInterface()), set(AttentionMaskInterface())
    return model.config._attn_implementation, hooks, names


def test_both_names_are_public():
    assert largeprompt.compressed is compressed
    assert largeprompt.LargePromptCache is LargePromptCache


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, {"num_beams": 2}, {"prefill_chunk_size": 13}])
def test_generate_in_the_block_compresses_by_itself(name, options):
    model, ids = tiny_model(name, torch.float64), tokens(60)[None]
    with compressed(model, **FEW) as new_cache:
        result = model.generate(ids, **OPTIONS, **options, return_dict_in_generate=True)
        cache = new_cache()
        by_hand = model.generate(ids, **OPTIONS, **options, cache=cache)
    assert type(result.cache) is LargePromptCache
    assert torch.equal(result.sequences, by_hand)
    ours, theirs = result.cache.report(), cache.report()
    assert ours.nbytes == theirs.nbytes < ours.exact_nbytes


def test_forward_pass_with_use_cache_compresses_and_one_without_does_not():
    model, ids = tiny_model("llama"), tokens(30)[None]
    with torch.no_grad(), compressed(model, **FEW):
        assert type(model(ids, use_cache=True).cache) is LargePromptCache
        assert model(ids, use_cache=False).cache is None


def test_caches_of_the_caller_stay_the_callers():
    model, ids = tiny_model("llama"), tokens(60)[None]
    exact = model.generate(ids, **OPTIONS)
    with compressed(model, **FEW):
        mine = DynamicCache(config=model.config)
        assert torch.equal(model.generate(ids, **OPTIONS, cache=mine), exact)
        assert mine.get_seq_length() == 64
        own = LargePromptCache(model, budget=1.0)
        assert torch.equal(model.generate(ids, **OPTIONS, cache=own), exact)
    assert torch.equal(model.generate(ids, **OPTIONS), exact)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_block_restores_the_model_after_an_error(implementation):
    model = tiny_model("gemma3")
    model.set_attn_implementation(implementation)
    before = state(model)
    with pytest.raises(KeyboardInterrupt), compressed(model, **FEW):
        raise KeyboardInterrupt
    assert state(model) == before
    with compressed(model, **FEW):
        assert state(model) != before
    assert state(model) == before


def test_blocks_inside_blocks_end_one_after_another():
    model, ids = tiny_model("llama", torch.float64), tokens(60)[None]
    before, exact = state(model), model.generate(ids, **OPTIONS)
    with compressed(model, **FEW):
        few = model.generate(ids, **OPTIONS)
        with compressed(model, method=KeepAll(), budget=0.5, minimum_length=20):
            model.generate(ids, **OPTIONS)
        with cache_attention(model):
            assert torch.equal(model.generate(ids, **OPTIONS), few)
        assert torch.equal(model.generate(ids, **OPTIONS), few)
        assert not torch.equal(few, exact)
    assert state(model) == before


def test_blocks_of_two_models_do_not_mix():
    one, two, ids = tiny_model("llama"), tiny_model("qwen3"), tokens(60)[None]
    exact = two.generate(ids, **OPTIONS)
    with compressed(one, **FEW):
        assert torch.equal(two.generate(ids, **OPTIONS), exact)


def test_block_refuses_before_anything_is_read():
    model = tiny_model("mistral")
    before = state(model)
    with (
        pytest.raises(UnsupportedModelError, match="nothing to compress"),
        compressed(model, budget=0.1),
    ):
        pytest.fail("the block must not start")
    with (
        pytest.raises(TypeError, match="speed"),
        compressed(tiny_model("llama"), budget=0.1, speed=3),
    ):
        pytest.fail("the block must not start")
    assert state(model) == before
