import pytest
import torch

from largeprompt.errors import CacheError
from largeprompt.hf import LargePromptCache, cache_attention
from largeprompt.hf.cache_budget import ErrorTarget, SharedBudget
from tests.hf.keeping import ENDS, changed, folding, held
from tests.hf.tiny import tiny_model, tokens

N = 100
LATER = 42  # half of the 84 queries that a method may see
SHARES = ErrorTarget(0.1).shares


def counts(cache):
    """The atoms of every KV head of every layer."""
    return torch.cat([held(layer).atoms.starts.diff() for layer in folding(cache)])


def compress(model, **budget):
    with torch.no_grad(), cache_attention(model):
        cache = LargePromptCache(model, **changed(ENDS, budget=None) | budget)
        model(tokens(N)[None], cache=cache)
        prompts = [layer.texts()[0].prompt for layer in folding(cache)]
        cache.compress()
    return cache, prompts


def naive_errors(prompt, head):
    """The error at each share: two sinks and the end of what is before the cut."""
    key, value = prompt.key[head], prompt.value[head]
    errors = {}
    for share in SHARES:
        count = int(share * (N - LATER))
        if count < 2:
            continue
        rows = [0, 1, *range(N - LATER - (count - 2), N - LATER)]
        found = []
        for group in range(3):
            for later in range(LATER):
                here = N - LATER + later
                query = prompt.query[head, group, here - N]
                outputs = []
                for seen in ([*range(here + 1)], [*rows, *range(N - LATER, here + 1)]):
                    weights = (prompt.scale * key[seen] @ query).softmax(0)
                    outputs.append(weights @ value[seen])
                exact, kept = outputs
                found.append((kept - exact).norm() / exact.norm())
        errors[share] = float(torch.stack(found).median())
    return errors


def test_error_target_gives_each_head_the_least_share_that_meets_it():
    model = tiny_model("llama", torch.float64)
    _, prompts = compress(model, budget=0.5)
    heads = [naive_errors(prompt, head) for prompt in prompts for head in range(2)]
    target = 1.001 * sorted(errors[0.4] for errors in heads)[3]
    cache, _ = compress(model, error=target)
    shares = [
        next((share for share, error in errors.items() if error <= target), 1.0)
        for errors in heads
    ]
    assert counts(cache).tolist() == [int(share * N) for share in shares]
    assert 1.0 in shares  # a head that does not compress stays exact
    assert min(shares) < 1.0


def test_shared_budget_spends_no_more_and_errs_less_than_equal_shares():
    model = tiny_model("llama", torch.float64)
    cache, prompts = compress(model, budget=SharedBudget(0.1, (0.5, 1.0, 2.0, 4.0)))
    given = counts(cache)
    assert given.sum() <= 0.1 * N * 6
    assert len(set(given.tolist())) > 1
    heads = [naive_errors(prompt, head) for prompt in prompts for head in range(2)]
    share = {int(share * N): share for share in SHARES}
    chosen = sum(
        errors[share[count]] ** 2
        for errors, count in zip(heads, given.tolist(), strict=True)
    )
    assert chosen <= sum(errors[0.1] ** 2 for errors in heads)


def test_shared_budget_below_what_the_method_needs_is_refused():
    model = tiny_model("llama")
    with pytest.raises(CacheError, match="6 heads need"):
        compress(model, budget=SharedBudget(0.02, (0.5, 1.0, 8.0)))


def test_short_texts_beside_long_ones_stay_exact_whatever_the_rule():
    model = tiny_model("llama", torch.float64)
    ids = torch.stack([tokens(60), tokens(60, seed=1)])
    mask = (torch.arange(60) >= torch.tensor([[0], [45]])).long()
    with torch.no_grad(), cache_attention(model):
        settings = changed(ENDS, budget=SharedBudget(0.2))
        cache = LargePromptCache(model, **settings)
        model(ids, attention_mask=mask, cache=cache)
        cache.compress()
    for layer in folding(cache):
        assert held(layer, 1).atoms.starts.diff().tolist() == [15, 15]
        assert held(layer, 0).atoms.starts.diff().max() < 60
