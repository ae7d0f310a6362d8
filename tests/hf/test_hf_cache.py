from typing import Any

import pytest
import torch
from torch.testing import assert_close
from transformers import DynamicCache

from largeprompt.compress.indexing import ClusterIndex
from largeprompt.errors import UnsupportedModelError
from largeprompt.hf import LargePromptCache, cache_attention
from largeprompt.kernels import ReferenceKernel
from tests.hf.keeping import ENDS, EXACT, folding, held, padded
from tests.hf.tiny import tiny_model, tokens

NAMES = ["llama", "gemma3", "qwen3"]


def read_on(model, cache, ids, first):
    """The logits of a prompt of `first` tokens and of each later token by itself."""
    logits = [model(ids[:, :first], cache=cache).logits]
    for i in range(first, ids.shape[1]):
        logits.append(model(ids[:, i : i + 1], cache=cache).logits)
    return torch.cat(logits, 1)


@pytest.mark.parametrize("name", NAMES)
def test_cache_that_keeps_every_token_gives_the_exact_logits(name):
    model, ids = tiny_model(name, torch.float64), tokens(70)[None]
    exact = model(ids).logits
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **EXACT)
        assert_close(read_on(model, cache, ids, 64), exact)
    assert all(layer.folded == 64 for layer in folding(cache))
    assert cache.get_seq_length() == 70


@pytest.mark.parametrize("name", NAMES)
def test_prefill_is_bit_equal_to_an_exact_cache(name):
    model, ids = tiny_model(name), tokens(70)[None]
    exact = model(ids, cache=DynamicCache(config=model.config)).logits
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **ENDS, prompt_length=70)
        assert torch.equal(model(ids, cache=cache).logits, exact)
    assert all(layer.folded == 70 for layer in folding(cache))


@pytest.mark.parametrize("settings", [{"budget": 1.0}, ENDS | {"minimum_length": 65}])
def test_short_prompts_and_full_budgets_are_bit_equal_to_an_exact_cache(settings):
    model, ids = tiny_model("gemma3"), tokens(70)[None]
    exact = read_on(model, DynamicCache(config=model.config), ids, 64)
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **settings)
        assert torch.equal(read_on(model, cache, ids, 64), exact)
    assert cache.report().share == 1


def test_step_after_compression_is_the_definition_over_the_kept_tokens():
    model, ids = tiny_model("llama", torch.float64), tokens(61)[None]
    with torch.no_grad(), cache_attention(model):
        whole = DynamicCache(config=model.config)
        model(ids[:, :60], cache=whole)
        cache = LargePromptCache(model, **ENDS)
        model(ids[:, :60], cache=cache)
        seen = {}
        project = model.model.layers[0].self_attn
        project.q_proj.register_forward_hook(
            lambda module, args, out: seen.update(query=out)
        )
        project.o_proj.register_forward_pre_hook(
            lambda module, args: seen.update(output=args[0])
        )
        model(ids[:, 60:], cache=cache)
        query = seen["query"].view(6, 10)
        cos, sin = model.model.rotary_emb(query, torch.tensor([[60]]))
        half = torch.cat([-query[:, 5:], query[:, :5]], -1)
        query = query * cos[0] + half * sin[0]
    rows = [0, 1, *range(44, 60)]  # two sinks, then 18 tokens' worth
    layer: Any = whole.layers[0]
    for head in range(6):
        new_key, new_value = (t[0, head // 3] for t in folding(cache)[0].tail())
        key = torch.cat([layer.keys[0, head // 3, rows], new_key])
        value = torch.cat([layer.values[0, head // 3, rows], new_value])
        weights = (10**-0.5 * key @ query[head]).exp()
        assert_close(
            seen["output"][0, 0, 10 * head : 10 * head + 10],
            weights @ value / weights.sum(),
        )


@pytest.mark.parametrize("name", NAMES)
def test_chunked_prefill_and_one_pass_give_the_same_cache(name):
    model, ids = tiny_model(name, torch.float64), tokens(80)[None]
    with torch.no_grad(), cache_attention(model):
        once, chunked = (LargePromptCache(model, **ENDS, queries=24) for _ in range(2))
        one = read_on(model, once, ids, 75)
        for chunk in ids[:, :75].split(19, 1):
            model(chunk, cache=chunked)
        other = read_on(model, chunked, ids[:, 75:], 1)
    assert_close(other, one[:, 75:])
    for mine, theirs in zip(folding(once), folding(chunked), strict=True):
        assert mine.folded == theirs.folded == 75
        assert_close(mine.errors, theirs.errors)


@pytest.mark.parametrize("name", NAMES)
def test_several_later_tokens_in_one_pass_answer_as_one_after_another(name):
    model, ids = tiny_model(name, torch.float64), tokens(90)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **ENDS)
        model(ids[:, :64], cache=cache)
        cache.compress()
        together = model(ids[:, 64:], cache=cache.clone()).logits
        alone = read_on(model, cache.clone(), ids[:, 64:], 1)
        halves = cache.clone()
        model(ids[:, 64:77], cache=halves)
        second = model(ids[:, 77:], cache=halves).logits
    assert_close(together, alone)
    assert_close(together[:, 13:], second)


@pytest.mark.parametrize("name", NAMES)
def test_left_padding_changes_nothing_and_is_never_kept(name):
    model = tiny_model(name, torch.float64)
    texts = [tokens(n, seed=n) for n in (71, 53, 18)]  # the last one is too short
    ids, mask = padded([text[:-3] for text in texts])
    later = torch.stack([text[-3:] for text in texts])
    with torch.no_grad(), cache_attention(model):
        batch = LargePromptCache(model, **ENDS)
        position = mask.cumsum(-1) - 1
        model(ids, attention_mask=mask, position_ids=position.clamp(0), cache=batch)
        steps = []
        for i in range(3):
            mask = torch.cat([mask, mask.new_ones(3, 1)], 1)
            position = mask.sum(-1, keepdim=True) - 1
            steps.append(
                model(
                    later[:, i : i + 1],
                    attention_mask=mask,
                    position_ids=position,
                    cache=batch,
                ).logits
            )
        together = torch.cat(steps, 1)
        for row, text in enumerate(texts):
            cache = LargePromptCache(model, **ENDS)
            alone = read_on(model, cache, text[None], len(text) - 3)
            assert_close(together[row], alone[0, -3:])
            for mine, theirs in zip(folding(batch), folding(cache), strict=True):
                if theirs.segments:
                    assert_close(held(mine, row).atoms.key, held(theirs).atoms.key)


def test_right_padding_is_refused():
    model, ids = tiny_model("llama"), tokens(60).view(2, 30)
    mask = (torch.arange(30) < torch.tensor([[30], [25]])).long()
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **ENDS)
        model(ids, attention_mask=mask, cache=cache)
        with pytest.raises(UnsupportedModelError, match="on the left"):
            cache.compress()


@pytest.mark.parametrize("name", NAMES)
def test_layers_return_as_many_keys_as_they_advertise(name, monkeypatch):
    model, ids = tiny_model(name), tokens(110)[None]
    with torch.no_grad(), cache_attention(model):
        cache, checked = LargePromptCache(model, **ENDS, tail_limit=9), 0
        update = cache.update

        def checking(key, value, layer, *args, **kwargs):
            nonlocal checked
            length, offset = cache.get_mask_sizes(key.shape[2], layer)
            seen = cache.get_seq_length(layer)
            keys, values = update(key, value, layer, *args, **kwargs)
            assert keys.shape[2] == values.shape[2] == length
            assert offset + length == seen + key.shape[2]
            checked += 1
            return keys, values

        monkeypatch.setattr(cache, "update", checking)
        for piece in ids.split([40, 1, 1, 20, 1, 7, 1, 1, 38], 1):
            model(piece, cache=cache)
    assert checked == 3 * 9
    assert all(layer.folded > 60 for layer in folding(cache))


def test_summaries_stand_for_kv_heads_not_for_query_heads():
    model, ids = tiny_model("llama"), tokens(64)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **ENDS)
        model(ids, cache=cache)
        cache.compress()
    assert held(folding(cache)[0]).atoms.starts.tolist() == [
        0,
        19,
        38,
    ]  # 0.3 of 64, two heads
    assert len(cache.report().layers[0].errors) == 6  # three query heads each


def test_sliding_layers_are_those_of_an_exact_cache():
    model, ids = tiny_model("gemma3"), tokens(70)[None]
    with torch.no_grad(), cache_attention(model):
        exact = DynamicCache(config=model.config)
        read_on(model, exact, ids, 69)
        cache = LargePromptCache(model, **ENDS)
        read_on(model, cache, ids, 69)
    mine: Any = cache.layers[0]  # before the first full layer
    theirs: Any = exact.layers[0]
    assert type(mine) is type(theirs)
    assert torch.equal(mine.keys, theirs.keys)
    assert cache.is_sliding == exact.is_sliding == [True, False, True]


def test_decoding_leaves_what_is_compressed_as_it_is():
    model, ids = tiny_model("llama"), tokens(70)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **ENDS)
        model(ids[:, :60], cache=cache)
        cache.compress()
        before = [layer.segments[0][0] for layer in folding(cache)]
        read_on(model, cache, ids[:, 60:], 1)
    after = [layer.segments[0][0] for layer in folding(cache)]
    assert all(one is other for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_with_large_logits_is_no_worse_than_twice_sdpa(dtype):
    model, ids = tiny_model("llama", torch.float64), tokens(66)[None]
    with torch.no_grad():
        for block in model.model.layers:
            block.self_attn.k_proj.weight *= 40  # q.k beyond what float16 holds
        low = tiny_model("llama", torch.float64)
        low.load_state_dict(model.state_dict())
        low = low.to(dtype)
        model.load_state_dict(low.state_dict())
        exact = model(ids).logits[:, -2:]
        theirs = low(ids).logits[:, -2:]
        with cache_attention(low):
            cache = LargePromptCache(low, **EXACT, kernel=ReferenceKernel())
            ours = read_on(low, cache, ids, 64)[:, -2:]
    assert ours.isfinite().all()
    error = (ours - exact).norm()
    assert error <= 2 * (theirs - exact).norm()


def test_key_channel_with_a_large_bias_does_not_disturb_the_answer():
    model, ids = tiny_model("qwen3", torch.float64), tokens(66)[None]
    with torch.no_grad():
        for block in model.model.layers:
            block.self_attn.k_norm.weight[3] = 1e3
        exact = model(ids).logits
        with cache_attention(model):
            cache = LargePromptCache(model, **EXACT)
            assert_close(read_on(model, cache, ids, 64), exact)


def test_indexed_mode_that_always_reads_every_key_gives_the_exact_logits():
    model, ids = tiny_model("llama", torch.float64), tokens(50)[None]
    index = ClusterIndex(clusters=2, rank=1, window=48)
    settings: dict[str, Any] = {"mode": "indexed", "budget": 0.1, "minimum_length": 20}
    with torch.no_grad():
        exact = model(ids).logits
        with cache_attention(model):
            cache = LargePromptCache(model, **settings, method=index)
            assert_close(read_on(model, cache, ids, 48), exact)
            report = cache.report()
            assert report.nbytes > report.exact_nbytes  # nothing is dropped
            few = ClusterIndex(clusters=2, rank=1, window=8)
            cache = LargePromptCache(model, **settings, method=few)
            assert not torch.allclose(read_on(model, cache, ids, 48), exact)


def test_tail_is_compressed_when_it_outgrows_its_limit():
    model, ids = tiny_model("llama", torch.float64), tokens(100)[None]
    exact = model(ids).logits
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **EXACT, tail_limit=15)
        assert_close(read_on(model, cache, ids, 60), exact)
    assert all(len(layer.segments[0]) == 3 for layer in folding(cache))
    assert all(layer.tail_length == 10 for layer in folding(cache))
