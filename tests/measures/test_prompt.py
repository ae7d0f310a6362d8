import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from largeprompt.measures import Prompt, tilt
from largeprompt.testing import assert_is_measure, close
from tests.measures.zoo import NAMES, specimen, tilts

SEEDS = st.integers(0, 2**31 - 1)
SCALES = st.floats(0, 1e4)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 2, 53])
def test_prompt_tilted_mean_is_scaled_dot_product_attention(n):
    generator = seeded(1)
    tokens, queries = normal(generator, n, 7), normal(generator, 3, 11, 7)
    theirs = scaled_dot_product_attention(
        queries, tokens.expand(3, n, 7), tokens.expand(3, n, 7), scale=1.0
    )
    close(Prompt(tokens).tilted_mean(queries), theirs)


def test_prompt_weight_of_zero_is_an_atom_that_is_not_there():
    generator = seeded(2)
    tokens, t = normal(generator, 9, 3), normal(generator, 5, 3)
    log_weights = normal(generator, 9)
    log_weights[5:] = -math.inf
    padded, cut = Prompt(tokens, log_weights), Prompt(tokens[:5], log_weights[:5])
    close(padded.log_mgf(t), cut.log_mgf(t))
    close(padded.tilted_mean(t), cut.tilted_mean(t))
    close(padded.tilted_cov(t), cut.tilted_cov(t))
    assert_is_measure(padded, t)
    draws = padded.sample(200, seeded(3))
    assert (draws[:, None] == tokens[:5]).all(-1).any(-1).all()


def test_prompt_with_duplicated_atoms_is_the_prompt_with_their_weights_added():
    generator = seeded(4)
    tokens, t = normal(generator, 6, 3), normal(generator, 5, 3)
    twice = Prompt(torch.cat([tokens, tokens[:2]]))
    weights = torch.tensor([2, 2, 1, 1, 1, 1], dtype=torch.float64)
    once = Prompt(tokens, weights.log())
    close(twice.log_mgf(t), once.log_mgf(t))
    close(twice.tilted_cov(t), once.tilted_cov(t))


def test_joint_prompt_reads_values_at_keys():
    generator = seeded(5)
    keys, values = normal(generator, 19, 3), normal(generator, 19, 5)
    queries = normal(generator, 7, 3)
    joint = Prompt.joint(keys, values)
    t = torch.nn.functional.pad(queries, (0, 5))
    theirs = scaled_dot_product_attention(queries, keys, values, scale=1.0)
    close(joint.tilted_mean(t)[:, 3:], theirs)


def test_prompt_lets_gradients_reach_atoms_and_weights():
    generator = seeded(6)
    atoms = normal(generator, 5, 3).requires_grad_()
    log_weights = normal(generator, 5).requires_grad_()
    t = normal(generator, 3)
    torch.autograd.gradcheck(
        lambda a, w: Prompt(a, w).tilted_cov(t), (atoms, log_weights)
    )


@settings(deadline=None)
@given(scale=SCALES, seed=SEEDS, n=st.integers(1, 7), d=st.integers(1, 4))
def test_tilted_mean_stays_in_the_hull_of_the_atoms(scale, seed, n, d):
    generator = seeded(seed)
    prompt = Prompt(normal(generator, n, d))
    t, direction = scale * normal(generator, d), normal(generator, d)
    support = (prompt.atoms @ direction).aminmax()
    inside = prompt.tilted_mean(t) @ direction
    slack = 1e-13 * prompt.atoms.abs().max() * direction.abs().sum()
    assert support.min - slack <= inside <= support.max + slack


@settings(deadline=None)
@given(scale=SCALES, seed=SEEDS)
def test_order_of_the_tokens_does_not_matter(scale, seed):
    generator = seeded(seed)
    tokens, t = normal(generator, 8, 3), scale * normal(generator, 3)
    order = torch.randperm(8, generator=generator)
    close(Prompt(tokens[order]).log_mgf(t), Prompt(tokens).log_mgf(t))
    close(Prompt(tokens[order]).tilted_mean(t), Prompt(tokens).tilted_mean(t))


@settings(deadline=None)
@given(scale=SCALES, seed=SEEDS)
def test_shifting_the_tokens_shifts_the_mean(scale, seed):
    generator = seeded(seed)
    tokens, shift = normal(generator, 8, 3), normal(generator, 3)
    t = scale * normal(generator, 3)
    near, far = Prompt(tokens), Prompt(tokens + shift)
    conditioned = 1e-13 * (1 + scale)  # rounding of the logits, as large as the tilt
    torch.testing.assert_close(
        far.tilted_mean(t), near.tilted_mean(t) + shift, rtol=1e-7, atol=conditioned
    )
    close(far.log_mgf(t), near.log_mgf(t) + t @ shift)


@settings(deadline=None)
@given(scale=SCALES, seed=SEEDS)
def test_prompt_of_one_token_answers_with_it(scale, seed):
    generator = seeded(seed)
    token, t = normal(generator, 1, 3), scale * normal(generator, 3)
    close(Prompt(token).tilted_mean(t), token[0])
    close(Prompt(token).tilted_cov(t), torch.zeros(3, 3, dtype=torch.float64))


@settings(deadline=None)
@given(scale=SCALES, seed=SEEDS)
def test_tilted_prompt_keeps_normalised_weights(scale, seed):
    generator = seeded(seed)
    prompt = Prompt(normal(generator, 8, 3))
    tilted = tilt(prompt, scale * normal(generator, 3))
    assert isinstance(tilted, Prompt)
    close(tilted.log_weights.exp().sum(), torch.tensor(1.0, dtype=torch.float64))


@settings(deadline=None)
@given(name=st.sampled_from(NAMES), scale=SCALES, seed=SEEDS)
def test_log_mgf_is_convex_and_its_gradient_monotone(name, scale, seed):
    measure = specimen(name).measure
    generator = seeded(seed)
    a, b = scale * normal(generator, 2, measure.dim)
    ends = (measure.log_mgf(a) + measure.log_mgf(b)) / 2
    slack = 1e-12 * (1 + ends.abs())
    assert measure.log_mgf((a + b) / 2) <= ends + slack
    if ends.isfinite():
        change = (measure.tilted_mean(a) - measure.tilted_mean(b)) @ (a - b)
        assert change >= -1e-12 * (1 + scale)


@settings(deadline=None)
@given(name=st.sampled_from(NAMES), seed=SEEDS)
def test_jensen_puts_log_mgf_above_its_tangents(name, seed):
    measure = specimen(name).measure
    t = tilts(measure).reshape(-1, measure.dim)
    start = t[seed % len(t)]
    tangent = measure.log_mgf(start) + (t - start) @ measure.tilted_mean(start)
    assert (measure.log_mgf(t) >= tangent - 1e-12).all()
