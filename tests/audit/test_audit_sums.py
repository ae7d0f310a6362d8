import dataclasses

import pytest
import torch

from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.statistics import (
    BLOCK,
    QueryStatistics,
    concatenate,
    query_statistics,
)
from largeprompt.audit.sums import TokenSums, token_sums


def tokens(n=50, seed=1):
    generator = torch.Generator().manual_seed(seed)
    logits = 30 * torch.randn(2, 6, n, generator=generator, dtype=torch.float64)
    values = torch.randn(2, n, 4, generator=generator, dtype=torch.float64)
    return logits, values, torch.rand(3, n, generator=generator) < 0.3


def layer(n=200, heads=6, kv_heads=2):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(h, n, 5, generator=generator) for h in (heads, kv_heads, kv_heads)
    ]


def close(one: TokenSums, other: TokenSums):
    for field in dataclasses.fields(TokenSums):
        torch.testing.assert_close(getattr(one, field.name), getattr(other, field.name))


def test_sums_over_disjoint_sets_add_up_to_those_of_the_union():
    logits, values, some = tokens()
    whole = token_sums(logits, values)
    close(token_sums(logits, values, some) + token_sums(logits, values, ~some), whole)
    pieces = [
        token_sums(logits[..., p], values[:, p]) for p in (slice(9), slice(9, 50))
    ]
    close(pieces[1] + pieces[0], whole)
    twice = token_sums(logits, values, some) + whole
    assert not torch.allclose(twice.mass, whole.mass)


def test_an_empty_set_adds_nothing():
    logits, values, some = tokens()
    nothing = token_sums(logits, values, torch.zeros_like(some))
    whole = token_sums(logits, values)
    close(whole + nothing, whole)
    close(nothing + whole, whole)


def test_sums_answer_as_softmax_over_the_set():
    logits, values, some = tokens()
    members = some.repeat(2, 1)
    weights = logits.masked_fill(~members, -torch.inf).softmax(-1)
    ours = token_sums(logits, values, some)
    torch.testing.assert_close(ours.attention().output, weights @ values)
    torch.testing.assert_close(
        ours.mass_square / ours.mass**2, weights.square().sum(-1)
    )


@pytest.mark.parametrize("window", [None, 41])
def test_statistics_split_over_workers_merge_to_the_same_bits(window):
    q, k, v = layer()
    prefixes = Prefixes.last(200, 3 * BLOCK, window)
    whole = query_statistics(q, k, v, prefixes, scale=0.4)
    queries = [
        query_statistics(q, k, v, prefixes.rows(i * BLOCK, (i + 1) * BLOCK), scale=0.4)
        for i in range(3)
    ]
    heads = [
        query_statistics(
            q[3 * i : 3 * i + 3], k[i : i + 1], v[i : i + 1], prefixes, scale=0.4
        )
        for i in range(2)
    ]
    for merged in (concatenate(queries, dim=1), concatenate(heads, dim=0)):
        for field in dataclasses.fields(QueryStatistics):
            assert torch.equal(getattr(merged, field.name), getattr(whole, field.name))


def test_statistics_make_every_tensor_where_the_arrays_live():
    q, k, v = layer()
    here = query_statistics(q, k, v, Prefixes.last(200, 9, 41), scale=0.4)
    prefixes = Prefixes.last(200, 9, 41)
    with torch.device("meta"):  # where a tensor goes that names no device
        there = query_statistics(q, k, v, prefixes, scale=0.4)
    assert torch.equal(here.held_out, there.held_out)
    assert there.held_out.device.type == "cpu"


def test_soft_capped_logits_are_those_of_capped_inner_products():
    q, k, v = layer(heads=2)
    prefixes = Prefixes.last(200, 9, None)
    ours = query_statistics(q, k, v, prefixes, scale=2.0, softcap=1.5)
    logits = 1.5 * torch.tanh(2 * q[:, -9:].double() @ k.double().mT / 1.5)
    masked = logits.masked_fill(~prefixes.visible(torch.arange(200)), -torch.inf)
    torch.testing.assert_close(ours.output, masked.softmax(-1) @ v.double())
    torch.testing.assert_close(ours.max_logit, masked.amax(-1))
    visible = logits[0, -1]
    torch.testing.assert_close(ours.logit_variance[0, -1], visible.var(correction=0))


def test_positions_that_see_both_ways_are_spread_over_the_text():
    prefixes = Prefixes.spread(100, 5, None)
    assert prefixes.positions.tolist() == [10, 30, 50, 70, 90]
    assert (prefixes.sizes == 100).all()
    near = Prefixes.spread(100, 5, 21)
    seen = near.visible(torch.arange(100))
    assert (seen.sum(-1) == near.sizes).all()
    assert near.sizes.tolist() == [21, 21, 21, 21, 20]
    assert (seen[:, ::2].sum(-1) == near.attended).all()
    assert (near.kept(torch.arange(100)) <= seen).all()


def test_drawn_positions_depend_on_seed_and_length_alone():
    def drawn(n, seed):
        chosen = Prefixes.drawn(n, 9, None, seed=seed, causal=True).positions
        assert (chosen >= n - n // 8).all()
        assert len(set(chosen.tolist())) == 9
        return chosen.tolist()

    assert drawn(800, 1) == drawn(800, 1) == sorted(drawn(800, 1))
    assert drawn(800, 1) != drawn(800, 2)
    assert drawn(1600, 1) != [n + 800 for n in drawn(800, 1)]
    few = Prefixes.drawn(20, 50, None, seed=0, causal=True)
    assert few.positions.tolist() == list(range(10, 20))
