import dataclasses

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from largeprompt.audit import statistics as module
from largeprompt.audit.limits import Answer, merge
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.statistics import QueryStatistics, query_statistics
from tests.audit import naive

SCALE = 0.7


def layer(n, seed=0, heads=6, kv_heads=2, width=5, value_width=3):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    # biases: means that are not zero must not matter to variances
    query = normal(heads, n, width)
    key = normal(kv_heads, n, width) + 2 * normal(kv_heads, 1, width)
    return query, key, normal(kv_heads, n, value_width) + 3


@pytest.mark.parametrize(("n", "window"), [(75, None), (75, 31), (300, 64), (9, None)])
def test_statistics_agree_with_covariance_matrices_and_scipy(n, window):
    query, key, value = layer(n)
    prefixes = Prefixes.last(n, 7, window)
    ours = query_statistics(query, key, value, prefixes, scale=SCALE)
    for head in range(6):
        for i, position in enumerate(prefixes.positions.tolist()):
            theirs = naive.statistics(
                query[head, position].numpy(),
                key[head // 3].numpy(),
                value[head // 3].numpy(),
                position,
                scale=SCALE,
                window=window,
            )
            for field in dataclasses.fields(QueryStatistics):
                value_here = getattr(ours, field.name)[head, i]
                torch.testing.assert_close(
                    value_here,
                    torch.tensor(theirs[field.name], dtype=torch.float64),
                    msg=lambda text, name=field.name: f"{name}: {text}",
                )


def test_output_is_scaled_dot_product_attention():
    n = 93
    query, key, value = layer(n)
    prefixes = Prefixes.last(n, 11, None)
    ours = query_statistics(query, key, value, prefixes, scale=SCALE).output
    theirs = F.scaled_dot_product_attention(
        query[None],
        key[None].repeat_interleave(3, 1),
        value[None].repeat_interleave(3, 1),
        is_causal=True,
        scale=SCALE,
    )[0, :, -11:]
    torch.testing.assert_close(ours, theirs)


def test_statistics_do_not_depend_on_the_block_size(monkeypatch):
    query, key, value = layer(120)
    prefixes = Prefixes.last(120, 50, 41)
    whole = query_statistics(query, key, value, prefixes, scale=SCALE)
    monkeypatch.setattr(module, "BLOCK", 7)
    monkeypatch.setattr(module, "ELEMENTS", 1000)
    parts = query_statistics(query, key, value, prefixes, scale=SCALE)
    for field in dataclasses.fields(QueryStatistics):
        torch.testing.assert_close(
            getattr(parts, field.name), getattr(whole, field.name)
        )


def test_statistics_of_a_shorter_length_ignore_later_tokens():
    query, key, value = layer(100)
    prefixes = Prefixes.last(60, 5, None)
    ours = query_statistics(query, key, value, prefixes, scale=SCALE)
    q, k, v = (x[:, :60] for x in (query, key, value))
    alone = query_statistics(q, k, v, prefixes, scale=SCALE)
    for field in dataclasses.fields(QueryStatistics):
        torch.testing.assert_close(
            getattr(ours, field.name), getattr(alone, field.name)
        )


def test_constant_keys_give_uniform_weights_and_no_error_in_sample():
    query, key, value = layer(40)
    flat = key[:, :1].expand_as(key)
    prefixes = Prefixes.last(40, 3, None)
    ours = query_statistics(query, flat, value, prefixes, scale=SCALE)
    sizes = prefixes.sizes.double().expand(6, 3)
    torch.testing.assert_close(ours.inverse_ess, 1 / sizes)
    torch.testing.assert_close(ours.entropy, sizes.log())
    torch.testing.assert_close(ours.in_sample, torch.zeros(6, 3).double())


def test_logits_of_size_ten_thousand_stay_finite():
    query, key, value = layer(64)
    prefixes = Prefixes.last(64, 4, None)
    ours = query_statistics(query, key, value, prefixes, scale=1e4)
    for field in dataclasses.fields(QueryStatistics):
        assert getattr(ours, field.name).isfinite().all(), field.name
    assert (ours.max_weight > 0.99).all()


def test_merging_with_nothing_changes_nothing():
    answer = Answer(torch.zeros(2).double(), torch.ones(2, 3).double())
    nothing = Answer(torch.full((2,), -torch.inf).double(), torch.zeros(2, 3).double())
    torch.testing.assert_close(merge(answer, nothing), answer.output)


@pytest.mark.parametrize("window", [None, 10, 33])
def test_prefixes_count_what_they_show(window):
    prefixes = Prefixes.last(50, 20, window)
    tokens = torch.arange(50)
    visible = prefixes.visible(tokens)
    assert (visible.sum(-1) == prefixes.sizes).all()
    assert (visible[:, ::2].sum(-1) == prefixes.attended).all()
    assert int(visible[-1].sum()) == prefixes.effective_n
    assert (prefixes.kept(tokens) <= visible).all()


def test_audits_at_most_half_the_positions():
    assert Prefixes.last(21, 1000, None).positions.tolist() == list(range(11, 21))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((7, 1, None), "a length must be at least 8; got 7"),
        ((20, 0, None), "queries must be at least 1; got 0"),
        ((20, 1, 3), "a window must be at least 8; got 3"),
    ],
)
def test_prefixes_too_short_to_split_are_refused(arguments, reason):
    with pytest.raises(ValueError, match=reason):
        Prefixes.last(*arguments)


def test_a_planted_fault_in_the_mask_is_seen_by_the_oracle():
    query, key, value = layer(75)
    wide = query_statistics(query, key, value, Prefixes.last(75, 1, 32), scale=SCALE)
    theirs = naive.statistics(
        query[0, 74].numpy(),
        key[0].numpy(),
        value[0].numpy(),
        74,
        scale=SCALE,
        window=31,
    )
    assert not np.isclose(float(wide.in_sample[0, 0]), theirs["in_sample"], rtol=1e-7)
