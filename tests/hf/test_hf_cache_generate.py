from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import DynamicCache

from largeprompt.errors import CacheError, UnsupportedModelError
from largeprompt.hf import LargePromptCache, cache_attention
from largeprompt.hf.cache_budget import Share
from tests.hf.keeping import ENDS, EXACT, changed, folding, padded
from tests.hf.tiny import tiny_model, tokens

NAMES = ["llama", "gemma3", "qwen3"]
SEARCHES: dict[str, Any] = {
    "greedy": {},
    "beams": {"num_beams": 3, "num_return_sequences": 2},
    "chunks": {"prefill_chunk_size": 17},
}


def generate(model, ids, cache=None, mask=None, **options):
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0} | options
    mask = torch.ones_like(ids) if mask is None else mask
    return model.generate(ids, attention_mask=mask, cache=cache, **options)


@pytest.mark.parametrize("options", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("name", NAMES)
def test_generate_with_every_token_kept_writes_the_exact_text(name, options):
    model = tiny_model(name, torch.float64)
    ids, mask = padded([tokens(60, seed=3), tokens(47, seed=4)])
    exact = generate(model, ids, mask=mask, **options)
    with cache_attention(model):
        cache = LargePromptCache(model, **EXACT)
        assert torch.equal(generate(model, ids, cache, mask, **options), exact)
    assert all(layer.folded == 60 for layer in folding(cache))


def test_generate_with_tokens_dropped_writes_another_text():
    model, ids = tiny_model("llama", torch.float64), tokens(60)[None]
    exact = generate(model, ids)
    with cache_attention(model):
        cache = LargePromptCache(model, **changed(ENDS, budget=Share(0.05)))
        assert not torch.equal(generate(model, ids, cache), exact)


def test_sampling_draws_the_same_tokens_from_the_same_generator():
    model, ids = tiny_model("qwen3", torch.float64), tokens(60)[None]
    texts = []
    for settings in (None, EXACT):
        with torch.random.fork_rng(devices=[]), cache_attention(model):
            torch.default_generator.manual_seed(5)
            cache = settings and LargePromptCache(model, **settings)
            texts.append(generate(model, ids, cache, do_sample=True, temperature=0.7))
    assert torch.equal(*texts)


def test_beams_of_one_text_share_what_is_compressed():
    model, ids = tiny_model("llama"), tokens(60)[None]
    with cache_attention(model):
        cache = LargePromptCache(model, **ENDS)
        model(ids, cache=cache)
        cache.compress()
        before = cache.report()
        for layer in folding(cache):
            layer.batch_repeat_interleave(4)
        cache.reorder_cache(torch.tensor([2, 2, 0, 1]))
        model(tokens(4)[:, None], cache=cache)
    after = cache.report()
    one = 2 * 2 * 10 * 4 * 3  # a token of two KV heads, three layers
    assert after.nbytes == before.nbytes + 4 * one
    assert after.exact_nbytes == 4 * 61 * one


def test_reordered_texts_answer_from_their_own_prompts():
    model, ids = tiny_model("llama", torch.float64), tokens(120).view(2, 60)
    later = tokens(2, seed=8)[:, None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **ENDS)
        model(ids, cache=cache)
        cache.compress()
        other = cache.clone()
        other.reorder_cache(torch.tensor([1, 0]))
        assert_close(
            model(later.flip(0), cache=other).logits.flip(0),
            model(later, cache=cache).logits,
        )


def test_one_prompt_read_once_answers_many_questions():
    model, prompt = tiny_model("gemma3", torch.float64), tokens(60)[None]
    questions = [tokens(n, seed=n)[None] for n in (5, 1, 9)]
    with torch.no_grad(), cache_attention(model):
        stored = LargePromptCache(model, **ENDS)
        model(prompt, cache=stored)
        stored.compress()
        stored.freeze()
        held, answers = stored.nbytes, []
        for question in [*questions, questions[0]]:
            ids = torch.cat([prompt, question], 1)
            answers.append(generate(model, ids, stored.clone())[:, ids.shape[1] :])
        assert stored.nbytes == held
        assert stored.get_seq_length() == 60
        assert torch.equal(answers[0], answers[3])
        fresh = LargePromptCache(model, **ENDS)
        model(prompt, cache=fresh)
        fresh.compress()
        ids = torch.cat([prompt, questions[0]], 1)
        assert torch.equal(generate(model, ids, fresh)[:, 65:], answers[0])


def test_frozen_cache_refuses_every_change():
    model, ids = tiny_model("gemma3"), tokens(30)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **ENDS)
        model(ids, cache=cache)
        cache.freeze()
        for change in (
            lambda: generate(model, torch.cat([ids, ids], 1), cache),
            cache.compress,
            cache.reset,
            lambda: cache.crop(-1),
            lambda: cache.reorder_cache(torch.tensor([0])),
        ):
            with pytest.raises(CacheError, match="frozen"):
                change()
        assert cache.clone().compress() is None


def test_crop_takes_back_exact_tokens_and_refuses_compressed_ones():
    model, ids = tiny_model("llama", torch.float64), tokens(70)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **ENDS)
        model(ids[:, :60], cache=cache)
        cache.compress()
        right = model(ids[:, 60:], cache=cache.clone()).logits
        model(tokens(7, seed=9)[None], cache=cache)
        cache.crop(-7)
        assert_close(model(ids[:, 60:], cache=cache).logits, right)
        with pytest.raises(CacheError, match="all but 10 are compressed"):
            cache.crop(-11)
    assert not cache.is_croppable


def test_assisted_decoding_is_refused():
    model = tiny_model("llama")
    with (
        cache_attention(model),
        pytest.raises(ValueError, match="cache that can be cropped"),
    ):
        generate(
            model,
            tokens(60)[None],
            LargePromptCache(model, **ENDS),
            prompt_lookup_num_tokens=2,
        )


def test_cache_without_its_attention_is_refused_at_once():
    model, ids = tiny_model("llama"), tokens(60)[None]
    cache = LargePromptCache(model, **ENDS)
    with pytest.raises(CacheError, match="does not see the model's queries"):
        generate(model, ids, cache)
    with torch.no_grad(), cache_attention(model):
        model(ids, cache=cache)
    with pytest.raises(CacheError, match="does not see the model's queries"):
        generate(model, torch.cat([ids, ids], 1), cache)


@pytest.mark.parametrize(
    ("part", "message"),
    [("mlp", "do not hold the same tokens"), ("q_proj", "do not hold the same tokens")],
)
def test_pass_that_was_broken_off_is_noticed(part, message):
    model, ids = tiny_model("llama"), tokens(60)[None]

    def interrupt(module, args, output):
        raise KeyboardInterrupt

    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **ENDS)
        module = model.model.layers[1].get_submodule(
            "self_attn.q_proj" if part == "q_proj" else part
        )
        handle = module.register_forward_hook(interrupt)
        with pytest.raises(KeyboardInterrupt):
            model(ids, cache=cache)
        handle.remove()
        with pytest.raises(CacheError, match=message):
            model(ids[:, :1], cache=cache)


def test_keys_that_the_model_changes_after_the_cache_are_noticed(monkeypatch):
    model, ids = tiny_model("llama"), tokens(60)[None]

    def changed(cache, key, value, *args, **kwargs):
        keys, values = update(cache, key, value, *args, **kwargs)
        return keys * 1, values

    update = LargePromptCache.update
    monkeypatch.setattr(LargePromptCache, "update", changed)
    with (
        torch.no_grad(),
        cache_attention(model),
        pytest.raises(CacheError, match="queries were not seen"),
    ):
        model(ids, cache=LargePromptCache(model, **ENDS))


def test_later_prompts_cannot_be_compressed_without_their_queries():
    model, ids = tiny_model("llama"), tokens(60)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **ENDS)
        model(ids, cache=cache)
        cache.compress()
        cache.compress()  # nothing has come since
        model(ids, cache=cache)
        with pytest.raises(CacheError, match="tail_limit"):
            cache.compress()


def test_dropout_and_other_attention_are_refused():
    model, ids = tiny_model("llama"), tokens(30)[None]
    model.config.attention_dropout = 0.1
    for block in model.model.layers:
        block.self_attn.attention_dropout = 0.1
    model.train()
    with (
        cache_attention(model),
        pytest.raises(UnsupportedModelError, match="drops weights out"),
    ):
        model(ids, cache=LargePromptCache(model, **ENDS))


def test_attention_leaves_other_caches_bit_equal_to_sdpa():
    model, ids = tiny_model("gemma3"), tokens(60)[None]
    with torch.no_grad():
        before = model(ids, cache=DynamicCache(config=model.config)).logits
        with cache_attention(model):
            inside = model(ids, cache=DynamicCache(config=model.config)).logits
            plain = model(ids, use_cache=False).logits
    assert torch.equal(inside, before)
    assert torch.equal(plain, before)
