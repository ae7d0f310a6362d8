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


def naive_answers(prompt, head):
    """What is exact, and what two sinks and the end before the cut answer."""
    key, value = prompt.key[head], prompt.value[head]
    answers = {}
    for share in SHARES:
        count = int(share * (N - LATER))
        if count < 2:
            continue
        rows = [0, 1, *range(N - LATER - (count - 2), N - LATER)]
        pairs = []
        for group in range(3):
            for later in range(LATER):
                here = N - LATER + later
                query = prompt.query[head, group, here - N]
                for seen in ([*range(here + 1)], [*rows, *range(N - LATER, here + 1)]):
                    weights = (prompt.scale * key[seen] @ query).softmax(0)
                    pairs.append(weights @ value[seen])
        exact, kept = torch.stack(pairs).unflatten(0, (3, LATER, 2)).unbind(2)
        answers[share] = exact, kept
    return answers


def naive_errors(prompt, head):
    """The median relative error at each share."""
    return {
        share: float(((kept - exact).norm(dim=-1) / exact.norm(dim=-1)).median())
        for share, (exact, kept) in naive_answers(prompt, head).items()
    }


def naive_damages(prompt):
    """Each head's mean square error at each share, over that of the layer's output."""
    heads = [naive_answers(prompt, head) for head in range(2)]
    size = sum(exact.square().sum() for exact, _ in (h[0.1] for h in heads))
    return [
        {
            s: float((kept - exact).square().sum() / size)
            for s, (exact, kept) in h.items()
        }
        for h in heads
    ]


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


def test_shared_budget_spends_no_more_and_damages_less_than_equal_shares():
    model = tiny_model("llama", torch.float64)
    cache, prompts = compress(model, budget=SharedBudget(0.1, (0.05, 0.2, 0.4)))
    given = counts(cache)
    assert given.sum() <= 0.1 * N * 6
    assert len(set(given.tolist())) > 1
    heads = [damages for prompt in prompts for damages in naive_damages(prompt)]
    share = {int(share * N): share for share in SHARES}
    chosen = sum(
        damages[share[count]]
        for damages, count in zip(heads, given.tolist(), strict=True)
    )
    assert chosen < sum(damages[0.1] for damages in heads)


def test_shared_budget_below_what_the_method_needs_is_refused():
    model = tiny_model("llama")
    with pytest.raises(CacheError, match="6 heads need"):
        compress(model, budget=SharedBudget(0.01, (0.16,)))


def test_a_number_is_shared_out_among_the_heads():
    model = tiny_model("llama", torch.float64)
    cache, _ = compress(model, budget=0.1)
    same, _ = compress(model, budget=SharedBudget(0.1))
    assert counts(cache).tolist() == counts(same).tolist()


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
