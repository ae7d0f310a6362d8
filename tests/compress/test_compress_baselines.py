"""What others do with the same bytes, against definitions written with loops."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from largeprompt.compress import baselines
from largeprompt.compress.baselines import (
    ExpectedAttention,
    Nystrom,
    OrderOneMoments,
    Performer,
    SinksAndWindow,
    SnapKV,
    Tova,
    WeightedCentroids,
    mapped,
)
from largeprompt.compress.baselines.keeping import tokens_kept
from largeprompt.compress.prompt import Compressor, LayerPrompt

N, HEADS, GROUP, K, V, W = 83, 2, 3, 6, 5, 20
METHODS = [
    SinksAndWindow(),
    SnapKV(window=8),
    Tova(),
    ExpectedAttention(),
    OrderOneMoments(window=8),
    OrderOneMoments(window=8, tilted=False),
    WeightedCentroids(window=8),
    WeightedCentroids(window=8, contiguous=True),
]


def prompt(pads: int = 0, dtype=torch.float32, seed: int = 0) -> LayerPrompt:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    valid = torch.ones(HEADS, N, dtype=torch.bool)
    valid[:, :pads] = False
    return LayerPrompt(
        key=(1.3 * normal(HEADS, N, K)).to(dtype),
        value=normal(HEADS, N, V).to(dtype),
        valid=valid,
        query=normal(HEADS, GROUP, W, K).to(dtype),
        scale=0.8,
    )


def tilts(given: LayerPrompt) -> torch.Tensor:
    generator = torch.Generator().manual_seed(9)
    return given.scale * torch.randn(HEADS, GROUP, 4, K, generator=generator)


def budget(tokens: float) -> torch.Tensor:
    return torch.full((HEADS,), tokens)


def weights_of(given: LayerPrompt, head: int, g: int, i: int) -> np.ndarray:
    """The causal softmax weights of the i-th kept query, with loops."""
    here, scores = N - W + i, np.full(N, -math.inf)
    q = given.query[head, g, i].double().numpy()
    for j in range(here + 1):
        if given.valid[head, j]:
            scores[j] = given.scale * q @ given.key[head, j].double().numpy()
    scores = np.exp(scores - scores.max())
    return scores / scores.sum()


def kept_rows(compact, head: int) -> set[tuple[float, ...]]:
    key, _ = compact.atoms.of(head)
    return {tuple(row) for row in key.tolist()}


def expected_rows(given: LayerPrompt, head: int, tokens: set[int]):
    return {tuple(given.key[head, j].tolist()) for j in tokens}


def best(scores: np.ndarray, always: set[int], count: int, pads: int = 0) -> set[int]:
    others = [j for j in range(pads, N) if j not in always]
    others.sort(key=lambda j: -scores[j])
    return always | set(others[: count - len(always)])


@pytest.mark.parametrize("pads", [0, 7])
def test_sinks_and_window_keeps_the_first_and_last_tokens(pads):
    given = prompt(pads)
    compact = SinksAndWindow(sinks=3).compress(given, budget(20.9))
    tokens = {*range(pads, pads + 3), *range(N - 17, N)}
    for head in range(HEADS):
        assert kept_rows(compact, head) == expected_rows(given, head, tokens)


@pytest.mark.parametrize("pads", [0, 7])
def test_snapkv_keeps_what_pooled_mean_weights_rank_highest(pads):
    given, window, kernel = prompt(pads), 8, 5
    compact = SnapKV(window, kernel, sinks=2).compress(given, budget(30.9))
    for head in range(HEADS):
        mean = np.zeros(N)
        for g in range(GROUP):
            for i in range(W - window, W):
                mean += weights_of(given, head, g, i) / (GROUP * window)
        padded = np.pad(mean, kernel // 2)
        pooled = np.array([padded[j : j + kernel].mean() for j in range(N)])
        always = {pads, pads + 1, *range(N - window, N)}
        tokens = best(pooled, always, 30, pads)
        assert kept_rows(compact, head) == expected_rows(given, head, tokens)
        unpooled = best(mean, always, 30, pads)  # the planted fault: no pooling
        assert kept_rows(compact, head) != expected_rows(given, head, unpooled)


def test_tova_keeps_what_the_last_query_weighs_most():
    given = prompt()
    compact = Tova().compress(given, budget(15.9))
    for head in range(HEADS):
        mean = sum(weights_of(given, head, g, W - 1) for g in range(GROUP))
        tokens = best(np.asarray(mean), {N - 1}, 15)
        assert kept_rows(compact, head) == expected_rows(given, head, tokens)


def test_expected_attention_scores_are_gaussian_means_of_exponentials():
    given = prompt()
    scores = ExpectedAttention(epsilon=0.02).scores(given)
    for head in range(HEADS):
        total = np.zeros(N)
        for g in range(GROUP):
            tilt = given.scale * given.query[head, g].double().numpy()
            mean, covariance = tilt.mean(0), np.cov(tilt.T, bias=True)
            key = given.key[head].double().numpy()
            logs = [k @ mean + k @ covariance @ k / 2 for k in key]
            total += np.exp(logs) / np.exp(logs).sum() / GROUP
        norms = np.linalg.norm(given.value[head].double().numpy(), axis=1)
        np.testing.assert_allclose(scores[head], (total + 0.02) * norms, rtol=1e-4)


def test_expected_attention_asks_queries_moved_to_later_positions():
    given = prompt()
    moves = []

    def rotate(query, by):
        moves.append(by)
        return -query

    turned = dataclasses.replace(given, rotate=rotate)
    opposite = dataclasses.replace(given, query=-given.query)
    method = ExpectedAttention(horizon=64, steps=4)
    torch.testing.assert_close(method.scores(turned), method.scores(opposite))
    assert moves == [16, 32, 48, 64]


@pytest.mark.parametrize("tilted", [False, True])
def test_order_one_moments_are_exact_to_first_order_about_their_tilt(tilted):
    given = prompt()
    method = OrderOneMoments(tilted, window=8, rank=min(K, V))
    compact = method.compress(given, budget(40))
    assert compact.sets is not None
    about = given.scale * given.query.double().flatten(1, 2).mean(1)
    if not tilted:
        about = torch.zeros_like(about)
    moved = 1e-3 * tilts(given).double()
    answer = compact.sets.answer((about[:, None, None] + moved).float())
    for head in range(HEADS):
        kept = kept_rows(compact, head)
        rest = [j for j in range(N) if tuple(given.key[head, j].tolist()) not in kept]
        key, value = given.key[head, rest].double(), given.value[head, rest].double()
        for g in range(GROUP):
            logits = (about[head] + moved[head, g]) @ key.mT
            torch.testing.assert_close(
                answer.log_mass[head, g, :, 0].double(),
                logits.logsumexp(-1),
                rtol=0,
                atol=3e-5,
            )
            torch.testing.assert_close(
                answer.output[head, g, :, 0].double(),
                logits.softmax(-1) @ value,
                rtol=0,
                atol=3e-5,
            )


def test_plain_moments_answer_log_n_and_mean_key():
    given = prompt()
    compact = OrderOneMoments(False, window=8).compress(given, budget(40))
    u = tilts(given)
    assert compact.sets is not None
    answer = compact.sets.answer(u)
    for head in range(HEADS):
        kept = kept_rows(compact, head)
        rest = [j for j in range(N) if tuple(given.key[head, j].tolist()) not in kept]
        mass = math.log(len(rest)) + u[head] @ given.key[head, rest].mean(0)
        torch.testing.assert_close(answer.log_mass[head, ..., 0], mass)


def test_clusters_of_equal_keys_answer_exactly():
    """Eleven kinds of tokens, in runs: more sets than kinds make no error."""
    given = prompt()
    kinds = torch.arange(N) * 11 // N
    given = dataclasses.replace(
        given, key=given.key[:, kinds * 7], value=given.value[:, kinds * 7]
    )
    compact = WeightedCentroids(0.8, window=3, sinks=1).compress(given, budget(70))
    answer = compact.answer(tilts(given))
    logits = tilts(given) @ given.key.mT[:, None]
    torch.testing.assert_close(answer.log_mass, logits.logsumexp(-1))
    torch.testing.assert_close(answer.output, logits.softmax(-1) @ given.value[:, None])


def test_contiguous_sets_are_runs_of_equally_many_neighbours():
    given = prompt()
    method = WeightedCentroids(0.4, window=4, sinks=1, contiguous=True)
    compact = method.compress(given, budget(50))
    assert compact.sets is not None
    count = compact.sets.key_mean.shape[1]
    for head in range(HEADS):
        kept = kept_rows(compact, head)
        rest = [j for j in range(N) if tuple(given.key[head, j].tolist()) not in kept]
        for c in range(count):
            run = [j for i, j in enumerate(rest) if i * count // len(rest) == c]
            assert float(compact.sets.base[head, 0, c]) == pytest.approx(
                math.log(len(run))
            )
            torch.testing.assert_close(
                compact.sets.key_mean[head, c], given.key[head, run].mean(0)
            )
            torch.testing.assert_close(
                compact.sets.value_mean[head, c], given.value[head, run].mean(0)
            )


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("tokens", [38.0, 47.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_method_holds_more_bytes_than_its_budget(method, tokens, dtype):
    if dtype is torch.bfloat16:
        tokens += 24  # statistics are float32 all the same
    given = prompt(pads=4, dtype=dtype)
    compact = method.compress(given, budget(tokens))
    allowed = HEADS * tokens * (K + V) * dtype.itemsize
    assert compact.nbytes <= allowed
    assert compact.nbytes > 0.85 * allowed


def test_a_method_that_forgets_its_statistics_would_hold_too_much():
    given = prompt()
    compact = OrderOneMoments(window=8).compress(given, budget(38))
    assert compact.sets is not None
    atoms = int(tokens_kept(given, budget(38), least=1).sum())
    token = (K + V) * 4
    assert atoms * token + compact.sets.nbytes > 2 * 38 * token


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_budget_of_every_token_keeps_attention_exact(method):
    given = prompt(pads=4)
    answer = method.compress(given, budget(N)).answer(tilts(given))
    logits = tilts(given) @ given.key.mT[:, None]
    logits = logits.masked_fill(~given.valid[:, None, None], -torch.inf)
    torch.testing.assert_close(answer.log_mass, logits.logsumexp(-1))
    torch.testing.assert_close(answer.output, logits.softmax(-1) @ given.value[:, None])


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_padding_is_no_token_for_any_method(method):
    """Pads of any content, in front, change nothing."""
    given = prompt(pads=6)
    loud = dataclasses.replace(
        given,
        key=torch.where(given.valid[..., None], given.key, 50.0),
        value=torch.where(given.valid[..., None], given.value, 50.0),
    )
    one, other = (
        method.compress(p, budget(45)).answer(tilts(p)) for p in (given, loud)
    )
    torch.testing.assert_close(one.output, other.output)


def test_the_methods_tested_here_are_all_there_are():
    public = {
        kind
        for kind in vars(baselines).values()
        if isinstance(kind, type) and issubclass(kind, Compressor)
    }
    assert {type(method) for method in METHODS} == public


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_budget_too_small_is_refused(method):
    with pytest.raises(ValueError, match="the budget must hold"):
        method.compress(prompt(), budget(0.5))


def test_a_budget_needs_an_entry_for_each_head():
    with pytest.raises(ValueError, match="one entry for each of 2 KV heads; got 3"):
        SnapKV().compress(prompt(), torch.full((3,), 40.0))


def test_performer_converges_to_softmax_as_features_grow():
    given = prompt()
    key, value = 0.4 * given.key[0], given.value[0]
    u = 0.4 * tilts(given)[0]
    logits = u @ key.mT
    errors = []
    for width in (50, 20_000):
        features = Performer().features(key, value, u.flatten(0, 1), width)
        answer = features.answer(u)
        wrong = answer.output - logits.softmax(-1) @ value
        errors.append(float(wrong.norm()))
        mass = answer.log_mass - logits.logsumexp(-1)
    assert errors[1] < errors[0] / 3
    assert float(mass.abs().max()) < 0.1


def test_nystrom_with_every_token_a_landmark_is_softmax_at_seen_tilts():
    generator = torch.Generator().manual_seed(3)
    key, value = (torch.randn(6, d, generator=generator) for d in (K, V))
    u = torch.randn(1, 6, K, generator=generator)
    features = Nystrom(cutoff=1e-12).features(key, value, u[0], 6)
    answer = features.answer(u)
    logits = u @ key.mT
    torch.testing.assert_close(answer.log_mass, logits.logsumexp(-1), rtol=0, atol=1e-3)
    torch.testing.assert_close(
        answer.output, logits.softmax(-1) @ value, rtol=0, atol=1e-3
    )


@pytest.mark.parametrize("method", [Performer(), Nystrom()], ids=repr)
def test_maps_hold_no_more_than_their_budget_and_merge_with_the_atoms(method):
    given = prompt()
    whole = mapped(method, given, budget(60), window=8)
    assert whole.nbytes <= 2 * 60 * (K + V) * 4
    u = 0.3 * tilts(given)
    atoms, answer = whole.atoms.answer(u), whole.answer(u)
    for head, features in enumerate(whole.rest):
        rest = features.answer(u[head])
        here = atoms.log_mass[head].exp()[..., None], rest.log_mass.exp()[..., None]
        sums = here[0] * atoms.output[head] + here[1] * rest.output
        torch.testing.assert_close(answer.output[head], sums / (here[0] + here[1]))


def test_maps_refuse_a_budget_of_every_token():
    with pytest.raises(ValueError, match="a map needs tokens that are not kept"):
        mapped(Performer(), prompt(), budget(N))
