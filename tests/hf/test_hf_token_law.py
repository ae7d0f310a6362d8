"""Tokens against the Gaussian of their moments, layer by layer."""

import math

import pytest
import torch
from scipy import stats

from largeprompt.errors import UnsupportedModelError
from largeprompt.hf.token_law import decoder_layers, token_laws
from largeprompt.hf.token_law_result import TokenLawResult
from largeprompt.hf.token_law_statistics import (
    moments_of,
    participation_ratio,
    sliced,
    unit_directions,
)
from largeprompt.measures import Gaussian
from largeprompt.testing import refutes
from tests.hf.tiny import tiny_model, tiny_tokenizer

TEXT = "Softmax over a long prompt is an operator on the law of its tokens. " * 9


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_sliced_distances_are_scipys_direction_by_direction():
    tokens = draw(80, 5).exp()
    along = unit_directions(5, 9, torch.Generator().manual_seed(1))
    found = sliced(tokens, along)
    slices = [stats.zscore((tokens @ direction).numpy()) for direction in along.mT]
    ranks = stats.norm.ppf([(i + 0.5) / 80 for i in range(80)])
    kolmogorov = [stats.kstest(s, "norm").statistic for s in slices]
    wasserstein = [stats.wasserstein_distance(s, ranks) for s in slices]
    kurtosis = sorted(stats.kurtosis(s) for s in slices)
    assert found.kolmogorov == pytest.approx(sum(kolmogorov) / 9, rel=1e-9)
    assert found.wasserstein == pytest.approx(sum(wasserstein) / 9, rel=1e-9)
    assert found.kurtosis == pytest.approx(kurtosis[4], rel=1e-9)


def test_sliced_distances_do_not_see_an_affine_change_of_one_direction():
    tokens = draw(60, 1).exp()
    along = torch.ones(1, 1, dtype=torch.float64)
    once, moved = sliced(tokens, along), sliced(1e3 * tokens - 5e4, along)
    assert moved == pytest.approx(once, rel=1e-6)


def test_a_direction_without_spread_is_left_out_and_none_is_refused():
    tokens = torch.cat([draw(50, 1), torch.full((50, 1), 3.0)], 1)
    both = torch.eye(2, dtype=torch.float64)
    assert sliced(tokens, both) == sliced(tokens, both[:, :1])
    with pytest.raises(ValueError, match="vary along some direction"):
        sliced(tokens, both[:, 1:])


def test_participation_ratio_counts_the_axes_of_a_law():
    cov = torch.diag(torch.tensor([2.0, 2.0, 2.0, 0.0], dtype=torch.float64))
    law = Gaussian(torch.zeros(4, dtype=torch.float64), cov)
    assert participation_ratio(law) == pytest.approx(3)


def kolmogorov_beside_gaussian(tokens, seed):
    along = unit_directions(3, 4, torch.Generator().manual_seed(seed))
    law = moments_of(tokens)
    gaussian = law.sample(len(tokens), torch.Generator().manual_seed(seed + 1))
    return sliced(tokens, along).kolmogorov, sliced(gaussian, along).kolmogorov


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("shape", "refuted"), [(lambda x: x, False), (torch.sinh, True)]
)
def test_gaussian_tokens_are_not_told_from_their_calibration(shape, refuted, alpha):
    """An exact sign test on independent repetitions; heavy tails are told apart."""
    trials = 60
    pairs = [
        kolmogorov_beside_gaussian(shape(draw(200, 3, seed=s)), 1000 + s)
        for s in range(trials)
    ]
    farther = sum(measured > calibration for measured, calibration in pairs)
    assert refutes(farther, trials, 0.5, alpha) is refuted


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_token_laws_are_those_of_the_models_own_states(name):
    model, tokenizer, states = tiny_model(name), tiny_tokenizer(), []

    def keep(block, args, options):  # of the very pass: two may round differently
        states.append((args[0] if args else options["hidden_states"])[0].clone())

    for block in model.base_model.layers:
        block.register_forward_pre_hook(keep, with_kwargs=True)
    result = token_laws(model, tokenizer, TEXT, 120, directions=200, seed=3)
    rows = result.table.to_pylist()
    hidden = [r for r in rows if r["what"] == "hidden states"]
    assert [r["layer"] for r in hidden] == [0, 1, 2, 3]
    keys = [(r["layer"], r["kv_head"]) for r in rows if r["what"] == "keys"]
    assert keys == [(layer, head) for layer in range(3) for head in range(2)]
    for layer in range(3):  # the last law is that after the final norm
        seen = states[layer][4:].double()
        along = unit_directions(36, 200, torch.Generator().manual_seed(9))
        row = hidden[layer]
        assert row["tokens"] == 116
        assert row["effective_dim"] == pytest.approx(
            participation_ratio(moments_of(seen)), rel=1e-9
        )
        # other directions of the same law
        assert row["kolmogorov"] == pytest.approx(
            sliced(seen, along).kolmogorov, rel=0.2
        )


def test_token_laws_are_the_same_twice_and_read_back(tmp_path):
    one, two = (
        token_laws(tiny_model("llama"), tiny_tokenizer(), TEXT, 60, directions=5)
        for _ in range(2)
    )
    assert one.table.equals(two.table)
    for name, content in one.files().items():
        (tmp_path / name).write_bytes(content)
    loaded = TokenLawResult.load(tmp_path)
    assert loaded.table.equals(one.table)
    assert all(math.isfinite(r["kurtosis_gaussian"]) for r in loaded.table.to_pylist())


def test_hooks_leave_with_the_measurement():
    model = tiny_model("llama")
    token_laws(model, tiny_tokenizer(), TEXT, 60, directions=2)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_questions_that_have_no_answer_are_refused():
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    with pytest.raises(ValueError, match="tokens must be at least 36; got 35"):
        token_laws(model, tokenizer, TEXT, 35)
    with pytest.raises(ValueError, match="directions must be at least 1; got 0"):
        token_laws(model, tokenizer, TEXT, 60, directions=0)
    with pytest.raises(ValueError, match="at most 300"):
        token_laws(model, tokenizer, TEXT, 301)
    model.model.layers = model.model.layers[:2]
    with pytest.raises(UnsupportedModelError, match="0 lists of 3 layers, not one"):
        decoder_layers(model)
