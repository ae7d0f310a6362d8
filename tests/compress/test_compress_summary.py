"""Summaries merge exactly, and padding leaves no trace in them."""

import dataclasses

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from largeprompt.compress.summary import Summary, summarise


def tokens(seed: int, n: int = 40, bias: float = 0.0):
    generator = torch.Generator().manual_seed(seed)
    key = torch.randn(n, 5, generator=generator)
    key[:, 2] += bias
    return key, torch.randn(n, 3, generator=generator)


def direct(key, value) -> list[np.ndarray]:
    """The definition, in float64 NumPy."""
    k, v = key.double().numpy(), value.double().numpy()
    dk, dv = k - k.mean(0), v - v.mean(0)
    return [np.array(len(k)), k.mean(0), v.mean(0), dk.T @ dk, dv.T @ dk]


def assert_is(summary: Summary, key, value):
    for field, expected in zip(
        dataclasses.fields(summary), direct(key, value), strict=True
    ):
        np.testing.assert_allclose(
            getattr(summary, field.name).numpy(), expected, rtol=1e-4, atol=1e-4
        )


@given(cut=st.integers(0, 40), second=st.integers(0, 40), seed=st.integers(0, 2**31))
def test_summaries_merged_in_any_order_are_the_summary_of_the_union(cut, second, seed):
    key, value = tokens(seed)
    where = torch.arange(len(key))
    first, last = sorted((cut, second))
    masks = [where < first, (where >= first) & (where < last), where >= last]
    one, two, three = (summarise(key, value, mask) for mask in masks)
    assert_is(one.merge(two).merge(three), key, value)
    assert_is(three.merge(one).merge(two), key, value)


def test_a_merge_without_the_term_between_the_means_is_seen():
    key, value = tokens(0)
    key[20:] += 3  # two halves with different means
    where = torch.arange(40)
    one, two = summarise(key, value, where < 20), summarise(key, value, where >= 20)
    faulty = one.key_scatter + two.key_scatter
    assert not np.allclose(faulty.numpy(), direct(key, value)[3], rtol=1e-2)
    assert_is(one.merge(two), key, value)


def test_a_key_channel_with_a_large_bias_loses_no_covariance():
    key, value = tokens(1, n=4000, bias=1000.0)
    halves = torch.arange(4000) < 1500
    merged = summarise(key, value, halves).merge(summarise(key, value, ~halves))
    expected = direct(key, value)[3] / 4000
    np.testing.assert_allclose(merged.key_covariance.numpy(), expected, atol=2e-3)


def test_a_summary_ignores_what_is_not_a_member_even_if_infinite():
    key, value = tokens(2)
    members = torch.arange(40) >= 7
    key[~members], value[~members] = torch.nan, torch.inf
    assert_is(summarise(key, value, members), key[7:], value[7:])


def test_an_empty_set_has_zeros_for_moments_and_merges_without_effect():
    key, value = tokens(3)
    nothing = summarise(key, value, torch.zeros(40, dtype=torch.bool))
    assert float(nothing.count) == 0
    assert torch.isfinite(nothing.key_covariance).all()
    everything = torch.ones(40, dtype=torch.bool)
    assert_is(nothing.merge(summarise(key, value, everything)), key, value)
    assert_is(summarise(key, value, everything).merge(nothing), key, value)
