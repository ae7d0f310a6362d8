"""An indexed prompt: what it holds, what it opens, what its sets answer."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from largeprompt.compress.cluster_sets import finite_set_tables
from largeprompt.compress.indexed import Indexed
from largeprompt.compress.indexing import ClusterIndex
from largeprompt.compress.kmeans import assign, labels
from largeprompt.compress.prompt import LayerPrompt
from largeprompt.laws import gaussian_law


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def prompt(tokens: int, padding: int = 0, width: int = 8) -> LayerPrompt:
    valid = torch.ones(2, tokens, dtype=torch.bool)
    valid[1, :padding] = False
    return LayerPrompt(
        normal(2, tokens, width, seed=0),
        normal(2, tokens, width + 1, seed=1),
        valid,
        normal(2, 3, 40, width, seed=2),
        width**-0.5,
    )


@settings(max_examples=20)
@given(
    tokens=st.integers(1, 90),
    padded=st.floats(0, 1),
    clusters=st.integers(1, 12),
    sinks=st.integers(0, 5),
    window=st.integers(0, 20),
)
def test_an_index_holds_every_valid_token_once(tokens, padded, clusters, sinks, window):
    padding = int(padded * tokens)
    layer = prompt(tokens, padding)
    index = ClusterIndex(clusters, 2, sinks, window).index(layer)
    for head, gone in enumerate((0, padding)):
        last = int(index.starts[head, -1])
        held = torch.cat([index.key[head, :last], index.value[head, :last]], 1)
        given_ = torch.cat([layer.key[head, gone:], layer.value[head, gone:]], 1)
        assert sorted(held.tolist()) == sorted(given_.tolist())
        always = min(sinks + window, tokens - gone)
        assert int(index.starts[head, 0]) == always
        ends = {*range(gone, gone + sinks), *range(tokens - window, tokens)}
        ends &= set(range(gone, tokens))
        read = sorted(index.key[head, :always].tolist())
        assert read == sorted(layer.key[head, sorted(ends)].tolist())


def test_an_index_does_not_depend_on_what_padding_holds():
    layer = prompt(80, padding=30)
    dirty = layer.key.clone()
    dirty[1, :30] = torch.nan
    spoilt = LayerPrompt(dirty, layer.value, layer.valid, layer.query, layer.scale)
    one, other = ClusterIndex(5, 2).index(layer), ClusterIndex(5, 2).index(spoilt)
    last = int(one.starts[1, -1])
    assert torch.equal(one.starts, other.starts)
    assert torch.equal(one.key[1, :last], other.key[1, :last])
    assert torch.equal(one.sets.directions, other.sets.directions)


def test_clusters_minimise_the_logit_variance_better_in_the_queries_metric():
    width = 8
    stretch = torch.tensor([4.0, *(0.2 for _ in range(width - 1))])
    layer = LayerPrompt(
        normal(1, 2000, width, seed=3),
        normal(1, 2000, width, seed=4),
        torch.ones(1, 2000, dtype=torch.bool),
        normal(1, 1, 200, width, seed=5) * stretch,
        1.0,
    )
    index = ClusterIndex(16, 1, 0, 0).index(layer)
    plain = labels(layer.key, layer.valid, 16)[0]
    logits = layer.query[0, 0] @ layer.key[0].mT
    ordered = layer.query[0, 0] @ index.key[0].mT
    ours = within(ordered, index.sizes[0].tolist())
    theirs = within(logits[:, plain.argsort()], plain.bincount().tolist())
    assert ours < theirs / 2


def within(logits: torch.Tensor, sizes: list[int]) -> float:
    """The mean over tokens of the logit variance of their cluster."""
    parts = [part for part in logits.split(sizes, 1) if part.shape[1]]
    total = sum(part.var(1, correction=0).mean() * part.shape[1] for part in parts)
    return float(total / logits.shape[1])


def test_kmeans_finds_clusters_that_lie_apart_and_assigns_to_the_nearest():
    centres = torch.eye(6)[None] * 50
    group = torch.arange(240) // 40
    points = centres[:, group] + normal(1, 240, 6, seed=6)
    members = torch.ones(1, 240, dtype=torch.bool)
    found = labels(points, members, 6)[0]
    pairs = {(int(a), int(b)) for a, b in zip(found, group, strict=True)}
    assert len(pairs) == 6
    nearest, distance = assign(points, centres)
    assert torch.equal(nearest[0], group)
    exact = (points - centres[:, group]).square().sum(-1)
    torch.testing.assert_close(distance, exact, rtol=0, atol=2500 * 8 * 2**-23)


@pytest.mark.parametrize("rank", [2, 8])
def test_a_cluster_of_gaussian_tokens_answers_within_the_laws_error(rank):
    tokens, width = 4000, 8
    shape = torch.linspace(1.5, 0.1, width)
    key = normal(1, tokens, width, seed=7) * shape
    value = key @ normal(width, 5, seed=8) + normal(1, tokens, 5, seed=9)
    query = normal(1, 2, 100, width, seed=10)
    layer = LayerPrompt(key, value, torch.ones(1, tokens, dtype=torch.bool), query, 1.0)
    index = ClusterIndex(1, rank, 0, 0).index(layer)
    tilt = query[:, :, :20]
    answer = index.sets.answer(tilt)
    logits = tilt @ key[:, None].mT
    masses = logits.logsumexp(-1)
    off = (answer.log_mass[..., 0] - masses).abs().mean()
    centroid = (np.log(tokens) + tilt @ key.mean(1)[0] - masses).abs().mean()
    variance = logits.var(-1)
    if rank == width:
        law = gaussian_law(tokens, variance.double().numpy().clip(0, 400))
        typical = float(np.sqrt(law.inverse_ess).mean())  # of the normaliser
        assert off < 2 * typical
    assert off < centroid / 2


def test_the_tables_follow_the_exact_law():
    sizes, left_out = torch.tensor([[1, 64, 900]]), torch.tensor([[0.0, 0.5, 0.0]])
    reach = torch.full((1, 3), 4.0)
    gain, damping = finite_set_tables(sizes, left_out, reach)
    s = np.linspace(0, 4, gain.shape[-1])
    for c, (n, rest) in enumerate([(1, 0.0), (64, 0.5), (900, 0.0)]):
        scale = np.sqrt(s**2 + rest)
        law = gaussian_law(n, scale**2)
        np.testing.assert_allclose(damping[0, c], law.shrinkage, atol=1e-3)
        nodes, weights = np.polynomial.legendre.leggauss(40)
        for place in (10, 40, 63):
            sigma = scale[place] * (nodes + 1) / 2
            mean = gaussian_law(n, sigma**2).shrinkage * sigma
            integral = weights @ mean * scale[place] / 2
            assert abs(float(gain[0, c, place]) - integral) < 2e-3


def test_a_query_opens_the_densest_clusters_that_fit():
    index = ClusterIndex(9, 2, 3, 10).index(prompt(120))
    predicted = index.sets.answer(normal(2, 3, 1, 8, seed=11)).log_mass[:, :, 0]
    exact = normal(2, 3, seed=12)
    opened = index.choose(predicted, exact, 60)
    for head, keys in itertools.product(range(2), (60,)):
        masses = predicted[head].double().exp()
        whole = masses.sum(1, keepdim=True) + exact[head, :, None].double().exp()
        density = ((masses / whole).sum(0) / index.sizes[head].clamp_min(1)).tolist()
        left, expected = keys - 13, []
        for c in sorted(range(9), key=lambda c: -density[c]):
            size = int(index.sizes[head, c])
            fits = 0 < size <= left
            left -= size * fits
            expected += [c] * fits
        assert opened[head].nonzero()[:, 0].tolist() == sorted(expected)


def test_an_indexed_prompt_reads_what_is_opened_and_nothing_else():
    index: Indexed = ClusterIndex(6, 2, 2, 5).index(prompt(70, padding=20))
    tilt = normal(2, 3, 8, seed=13)
    opened = torch.tensor([[True, False] * 3, [False, True] * 3])
    answer = index.read(tilt, opened)
    for head in range(2):
        edges = index.starts[head].tolist()
        rows = list(range(edges[0]))
        for c in range(6):
            rows += range(edges[c], edges[c + 1]) if opened[head, c] else []
        logits = tilt[head].double() @ index.key[head, rows].double().mT
        torch.testing.assert_close(answer.log_mass[head], logits.logsumexp(-1).float())
        output = logits.softmax(-1) @ index.value[head, rows].double()
        torch.testing.assert_close(answer.output[head], output.float())


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="no negative count"):
        ClusterIndex(clusters=0)
    with pytest.raises(ValueError, match="ridge must be positive"):
        ClusterIndex(ridge=0.0)
    with pytest.raises(ValueError, match="keys' width 8; got 9"):
        ClusterIndex(rank=9).index(prompt(20))
