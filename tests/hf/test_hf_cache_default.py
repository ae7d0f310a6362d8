"""The cache as it comes: the calibrated linear limit, decoded by the fastest kernel."""

import pytest
import torch

from largeprompt.compress.calibrated import CalibratedLimit
from largeprompt.hf import LargePromptCache, cache_attention
from largeprompt.kernels import ReferenceKernel
from tests.hf.keeping import folding, held
from tests.hf.tiny import tiny_model, tokens


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_default_cache_decodes_as_the_definition_does(dtype):
    model, ids = tiny_model("llama", dtype), tokens(253)[None]
    logits = {}
    with torch.no_grad(), cache_attention(model):
        for name, kernel in {"fastest": None, "reference": ReferenceKernel()}.items():
            cache = LargePromptCache(
                model, budget=0.6, minimum_length=200, queries=64, kernel=kernel
            )
            model(ids[:, :250], cache=cache)
            logits[name] = torch.cat(
                [model(ids[:, i : i + 1], cache=cache).logits for i in range(250, 253)]
            ).double()
            assert isinstance(folding(cache)[0].folding.method, CalibratedLimit)
    apart = (logits["fastest"] - logits["reference"]).norm()
    size = logits["reference"].norm()
    assert apart <= 10 * torch.finfo(dtype).eps * size


def test_default_cache_keeps_within_its_budget():
    model, ids = tiny_model("gemma3"), tokens(250)[None]
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, budget=0.5, minimum_length=200, queries=64)
        model(ids, cache=cache)
        cache.compress()
    row = cache.report().layers[0]
    assert row.nbytes <= 0.5 * row.exact_nbytes
    assert held(folding(cache)[0]).sets is not None
    assert row.seconds > 0
    assert all(error < 1 for error in row.errors)
