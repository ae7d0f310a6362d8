"""Moments answer as Gaussian tokens do, and are not trusted where they do not."""

import math

import pytest
import scipy.integrate
import torch

from largeprompt.compress.calibration import look
from largeprompt.compress.summary import summarise
from largeprompt.compress.surrogate import (
    finite_law,
    moment_sets,
    set_errors,
    trusted_sets,
)
from largeprompt.laws.exact import gaussian_law
from largeprompt.testing import refutes_mean


def gaussian_tokens(n: int, seed: int, k: int = 3, v: int = 2):
    """Keys of a covariance that is not isotropic; values partly linear in the keys."""
    generator = torch.Generator().manual_seed(seed)
    key = torch.randn(n, k, generator=generator) * torch.tensor([1.0, 0.5, 0.8])
    mix = torch.tensor([[0.7, -0.3, 0.2], [0.1, 0.9, -0.5]])
    return key + 0.3, key @ mix.mT + torch.randn(n, v, generator=generator)


def answers(key, value, tilt, order):
    everything = torch.ones(1, len(key), dtype=torch.bool)
    sets = moment_sets(summarise(key[None], value[None], everything), len(tilt), order)
    return sets.answer(tilt)


@pytest.mark.parametrize("n", [2.0, 64.0, 7000.0])
def test_the_mass_of_finitely_many_gaussians_is_the_mean_of_their_log_sum(n):
    """Oracle: adaptive quadrature of the law, between nodes of the other rule."""

    def integrand(s: float) -> float:
        return s * float(gaussian_law(n, s**2).shrinkage)

    gain, damping = finite_law(n)
    for place in (1, 9, 48):
        s = place * 0.25
        expected, _ = scipy.integrate.quad(integrand, 0, s, epsabs=1e-7, limit=20)
        assert float(gain[place]) == pytest.approx(expected, abs=3e-6)
        assert float(damping[place]) * s == pytest.approx(integrand(s), rel=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("claim", ["truth", "lie"])
def test_the_finite_law_is_not_refuted_by_drawn_log_sums(alpha, claim):
    n, s, draws = 20, 2.0, 20_000
    g = torch.randn(draws, n, generator=torch.Generator().manual_seed(5))
    drawn = (s * g).logsumexp(-1)
    gain, _ = finite_law(float(n))
    exact = math.log(n) + float(gain[8])  # s = 8 * 0.25
    expected = exact if claim == "truth" else math.log(n) + s**2 / 2
    width = 2 * s * 12 + math.log(n)  # every g in [-12, 12]: fails once in 10^32 draws
    assert refutes_mean(drawn.numpy(), expected, width, alpha) == (claim == "lie")


def test_order_two_answers_gaussian_tokens_within_the_exact_law():
    """In-sample errors are below the population's law, section 14.2 of the theory."""
    key, value = gaussian_tokens(4000, 0)
    tilt = torch.randn(1, 50, 3, generator=torch.Generator().manual_seed(1))
    sets = answers(key, value, tilt, 2)
    truth = look(tilt, key, None).of(torch.ones(4000, dtype=torch.bool), value)
    covariance = torch.cov(key.mT, correction=0)
    s2 = torch.einsum("gmk,kl,gml->gm", tilt, covariance, tilt)
    law = gaussian_law(4000, s2.double().numpy())
    cross = (value - value.mean(0)).mT @ (key - key.mean(0)) / 4000
    mse = law.mean_square_error(
        (tilt @ cross.mT).square().sum(-1).double().numpy(),
        float(torch.cov(value.mT, correction=0).trace()),
    )
    errors = (sets.output[..., 0, :] - truth.output).square().sum(-1).numpy()
    assert errors.mean() < mse.mean()
    order_one = answers(key, value, tilt, 1)
    assert (order_one.log_mass[..., 0] - truth.log_mass).abs().mean() > 10 * (
        sets.log_mass[..., 0] - truth.log_mass
    ).abs().mean()


def test_orders_zero_and_one_are_their_formulas():
    key, value = gaussian_tokens(30, 2)
    tilt = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(3))
    cross = (value - value.mean(0)).mT @ (key - key.mean(0)) / 30
    for order in (0, 1):
        answer = answers(key, value, tilt, order)
        mass = math.log(30) + tilt @ key.mean(0)
        output = value.mean(0) + order * tilt @ cross.mT
        torch.testing.assert_close(answer.log_mass[..., 0], mass)
        torch.testing.assert_close(answer.output[..., 0, :], output.expand(2, 4, 2))


def test_gaussian_tokens_are_trusted_at_order_two_and_a_lone_token_is_kept():
    key, value = gaussian_tokens(4000, 4)
    everyone = torch.ones(4000, dtype=torch.bool)
    tilt = 0.7 * torch.randn(1, 40, 3, generator=torch.Generator().manual_seed(5))
    tilt = tilt + 1
    trusted = trusted_sets(tilt, key, value, everyone, 0.2)
    assert trusted is not None
    assert float(trusted.variances.sum()) > 0
    key[17] += 40 * tilt.mean((0, 1))  # every query finds this token
    assert trusted_sets(tilt, key, value, everyone, 0.2) is None


def test_tokens_that_do_not_differ_fall_back_to_nothing_less_than_exact():
    key, value = torch.ones(9, 3), torch.ones(9, 2)
    everyone = torch.ones(9, dtype=torch.bool)
    tilt = torch.randn(1, 6, 3, generator=torch.Generator().manual_seed(6))
    sets = trusted_sets(tilt, key, value, everyone, 1e-5)
    assert sets is not None
    truth = look(tilt, key, None).of(everyone, value)
    assert float(set_errors(sets.answer(tilt), truth).max()) < 1e-5


def test_an_order_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="order must be 0, 1 or 2; got 3"):
        answers(*gaussian_tokens(5, 0), torch.ones(1, 1, 3), 3)
