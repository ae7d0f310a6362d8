import gc
import math
import weakref
from typing import Any

import torch
from torch.testing import assert_close
from typing_extensions import override

from largeprompt.compress.prompt import Compressor
from largeprompt.hf import LargePromptCache, cache_attention
from largeprompt.hf.cache_budget import Share
from tests.hf.keeping import FEW, KeepAll, KeepEnds, folding
from tests.hf.tiny import tiny_model, tokens


def storage_bytes():
    """The bytes of all tensors alive on the heap, every storage once."""
    gc.collect()
    tensors = [x for x in gc.get_objects() if issubclass(type(x), torch.Tensor)]
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in tensors}
    return sum(storage.nbytes() for storage in storages.values())


def test_bytes_reported_are_the_bytes_that_dropping_the_cache_frees():
    model, ids = tiny_model("gemma3"), tokens(120)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **FEW)
        model(ids[:, :110], cache=cache)
        for i in range(110, 120):
            model(ids[:, i : i + 1], cache=cache)
    reported = cache.nbytes
    held = storage_bytes()
    del cache
    freed = held - storage_bytes()
    small = 4096  # windows' lengths, a row of starts
    assert reported <= freed <= reported + small
    assert reported > 3 * small


def test_report_adds_up():
    model, ids = tiny_model("gemma3"), tokens(61)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **FEW)
        assert cache.report().exact_nbytes == cache.nbytes == 0
        assert cache.report().mean_error is None
        model(ids[:, :60], cache=cache)
        full = cache.report()
        queries = 60 * 6 * 10 * 4
        assert full.nbytes == full.exact_nbytes + queries
        model(ids[:, 60:], cache=cache)
    report = cache.report()
    token = 2 * 2 * 10 * 4
    assert report.tokens == 61
    assert [row.layer for row in report.layers] == [1]
    assert report.layers[0].exact_nbytes == 61 * token
    assert report.layers[0].nbytes == 13 * token + 3 * 8  # and where heads start
    assert report.nbytes == 13 * token + 3 * 8 + 2 * 23 * token  # and two windows
    assert report.seconds > 0
    assert report.share == report.nbytes / report.exact_nbytes


def test_error_reported_is_that_of_queries_which_the_method_never_saw():
    model, ids = tiny_model("llama", torch.float64), tokens(90)[None]
    given, record = [], {}

    class Spy(Compressor):
        """Keeps what it is given, too."""

        @override
        def compress(self, prompt, budget):
            given.append(prompt)
            return KeepEnds().compress(prompt, budget)

    def hear(module, args, output):
        record.setdefault(module, output)

    first = model.model.layers[0].self_attn
    with torch.no_grad(), cache_attention(model):
        handle = first.q_proj.register_forward_hook(hear)
        cache = LargePromptCache(
            model, method=Spy(), budget=Share(0.2), minimum_length=20, queries=32
        )
        model(ids, cache=cache)
        cache.compress()
        handle.remove()
    prompt = given[0]
    assert prompt.query.shape == (2, 3, 32, 10)
    # 16 older queries, moved by 48 positions: they then stand at 90 to 105
    raw = record[first.q_proj].view(90, 6, 10).transpose(0, 1)[:, 42:58].double()
    where = torch.arange(90, 106)
    cos, sin = model.model.rotary_emb(raw, where[None])
    half = torch.cat([-raw[..., 5:], raw[..., :5]], -1)
    tilt = 10**-0.5 * (raw * cos + half * sin).view(2, 3, 16, 10)
    exact = torch.einsum(
        "hgmn,hnv->hgmv", (tilt @ prompt.key[:, None].mT).softmax(-1), prompt.value
    )
    near = KeepEnds().compress(prompt, torch.full((2,), 0.2 * 90))
    error = (near.answer(tilt).output - exact).norm(dim=-1) / exact.norm(dim=-1)
    expected = error.median(-1).values.flatten()
    assert_close(
        torch.tensor(cache.report().layers[0].errors, dtype=torch.float64),
        expected,
        rtol=1e-4,
        atol=0,
    )


def test_error_of_kept_tokens_is_zero_and_of_one_token_unknown():
    model = tiny_model("llama", torch.float64)
    settings: dict[str, Any] = {
        "method": KeepAll(),
        "budget": Share(0.5),
        "minimum_length": 1,
    }
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **settings)
        model(tokens(40)[None], cache=cache)
        cache.compress()
        errors = torch.tensor(cache.report().layers[0].errors)
        assert_close(errors, torch.zeros(6), rtol=0, atol=1e-6)
        cache = LargePromptCache(model, **settings)
        model(tokens(1)[None], cache=cache)
        cache.compress()
    assert all(math.isnan(error) for error in cache.report().layers[0].errors)


def test_known_prompt_length_never_holds_two_layers_exactly():
    model, ids = tiny_model("llama"), tokens(80)[None]
    peak = {}
    with torch.no_grad(), cache_attention(model):
        for length in (None, 80):
            cache = LargePromptCache(model, **FEW, prompt_length=length)
            held = peak.setdefault(length, [])

            def count(module, args, output, cache=cache, held=held):
                held.append(sum(layer.tail_length for layer in folding(cache)))

            handle = model.model.layers[-1].self_attn.o_proj.register_forward_hook(
                count
            )
            for chunk in ids.split(30, 1):
                model(chunk, cache=cache)
            handle.remove()
    assert peak[None] == [90, 180, 240]
    assert peak[80] == [90, 180, 0]


def test_compressed_keys_leave_memory_with_the_prompt():
    model, ids = tiny_model("llama"), tokens(60)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **FEW)
        model(ids, cache=cache)
        keys = [weakref.ref(layer.keys) for layer in folding(cache)]
        cache.compress()
    gc.collect()
    assert all(key() is None for key in keys)
