"""The delta method and correlated tokens, against exact moments and drawn sequences."""

import math

import pytest
import torch

from largeprompt.attention import Head
from largeprompt.attention.asymptotic import delta_method, long_run_moments
from largeprompt.attention.output_moments import output_moments
from largeprompt.laws.correlated import geometric_autocorrelation, long_run
from largeprompt.laws.status import Status
from largeprompt.measures import Gaussian, Laplace, Mixture, Prompt, UniformSphere
from largeprompt.measures.process import Autocorrelated, Autoregression
from largeprompt.testing import close, refutes
from tests.attention.heads import (
    generator,
    random_gaussian,
    random_head,
    random_vector,
)

LAWS = {
    "gaussian": random_gaussian(1, 3),
    "mixture": Mixture(
        (random_gaussian(2, 3), random_gaussian(3, 3)),
        torch.tensor([0.3, 0.0], dtype=torch.float64),
    ),
    "sphere": UniformSphere(
        random_vector(4, 3), torch.tensor(1.5, dtype=torch.float64)
    ),
    "atoms": Prompt(torch.stack([random_vector(seed, 3) for seed in range(5)])),
}


@pytest.mark.parametrize("measure", LAWS.values(), ids=LAWS.keys())
def test_delta_method_agrees_with_the_exact_moments_of_a_long_prompt(measure):
    head, z, n = random_head(5, 3, scale=0.3), random_vector(6, 3), 10**7
    found, exact = (
        delta_method(head, measure, z, n),
        output_moments(head, measure, z, n),
    )
    assert n > 1e3 * found.reliable_from
    torch.testing.assert_close(
        n * found.covariance, n * exact.error, rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(
        n * found.bias, n * (exact.mean - exact.limit), rtol=1e-4, atol=1e-5
    )
    assert found.status is Status.ASYMPTOTIC


def test_delta_method_of_half_the_tilt_is_another_number():
    head, z, n = random_head(5, 3, scale=0.3), random_vector(6, 3), 10**7
    half = delta_method(head, LAWS["mixture"], z / 2, n).mean_square_error
    exact = output_moments(head, LAWS["mixture"], z, n).mean_square_error
    assert half != pytest.approx(exact, rel=0.05)


def line(scale: float) -> Head:
    one = torch.ones(1, 1, dtype=torch.float64)
    return Head(one, one, one, scale)


@pytest.mark.parametrize(("tilt", "inside"), [(0.49, True), (0.5, False), (0.7, False)])
def test_delta_method_needs_twice_the_tilt_inside_the_domain(tilt, inside):
    law = Laplace(torch.ones(1, dtype=torch.float64))  # log_mgf is finite below 1
    z = torch.ones(1, dtype=torch.float64)
    if inside:
        assert math.isfinite(delta_method(line(tilt), law, z, 100).mean_square_error)
    else:
        with pytest.raises(ValueError, match="interior to the domain"):
            delta_method(line(tilt), law, z, 100)


def test_long_run_of_independent_tokens_is_the_delta_method():
    gaussian, head, z = random_gaussian(7, 3), random_head(8, 3), random_vector(9, 3)
    alone = Autocorrelated(gaussian, torch.zeros(0, dtype=torch.float64))
    found, expected = (
        long_run_moments(head, alone, z, 50),
        delta_method(head, gaussian, z, 50),
    )
    close(found.bias, expected.bias)
    close(found.covariance, expected.covariance)


def test_long_run_of_a_scalar_autoregression_agrees_with_the_law_of_scalars():
    gaussian, head, z = random_gaussian(7, 3), random_head(8, 3), random_vector(9, 3)
    found = long_run_moments(head, Autoregression.isotropic(gaussian, 0.7), z, 90)
    u = head.tilt(z)
    shift = gaussian.cov @ u
    sums = long_run(float(u @ shift), geometric_autocorrelation(0.7))
    response = head.value @ shift
    variance = float((head.value @ gaussian.cov @ head.value.mT).trace())
    expected = sums.mean_square_error(90, float(response.square().sum()), variance)
    assert found.mean_square_error == pytest.approx(expected)
    close(found.bias, -sums.across * response / 90)


def by_pairs(sequence, head, z):
    """The long-run sums, from the joint law of two tokens at each lag, tilted."""
    u, marginal = head.tilt(z), sequence.marginal
    limit, alone = marginal.tilted_mean(u), 2 * marginal.log_mgf(u)
    spread, drift = torch.zeros_like(marginal.cov), torch.zeros_like(u)
    for lag, ahead in enumerate(sequence.autocovariances()):
        for gamma in {0: [ahead]}.get(lag, [ahead, ahead.mT]):
            rows = [[marginal.cov, gamma], [gamma.mT, marginal.cov]]
            pair = Gaussian.unchecked(
                marginal.mean.repeat(2), torch.cat([torch.cat(r, -1) for r in rows])
            )
            both = u.repeat(2)
            mass = torch.exp(pair.log_mgf(both) - alone)
            first, second = (pair.tilted_mean(both) - limit.repeat(2)).chunk(2)
            spread += mass * (gamma + torch.outer(first, second))
            drift += mass * first
    return head.value @ spread @ head.value.mT, -head.value @ drift


def test_long_run_of_a_vector_autoregression_is_the_sum_over_pairs_of_tokens():
    rotation = torch.tensor([[0.5, 0.3], [-0.4, 0.6]], dtype=torch.float64)
    cov = torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=torch.float64)
    sequence = Autoregression(Gaussian(random_vector(11, 2), cov), rotation)
    head, z = random_head(12, 2), random_vector(13, 2)
    found = long_run_moments(head, sequence, z, 10)
    covariance, bias = by_pairs(sequence, head, z)
    close(10 * found.covariance, covariance)
    close(10 * found.bias, bias)


VECTOR = Autoregression(
    Gaussian(
        torch.zeros(2, dtype=torch.float64),
        torch.tensor([[1.0, 0.5], [0.5, 1.0]], dtype=torch.float64),
    ),
    torch.tensor([[0.8, 0.1], [-0.2, 0.6]], dtype=torch.float64),
)
HEAD = Head(
    torch.eye(2, dtype=torch.float64),
    torch.eye(2, dtype=torch.float64),
    torch.tensor([[1.0, -0.5]], dtype=torch.float64),
    1.0,
)
ASKING = torch.tensor([0.4, 0.3], dtype=torch.float64)
PROMPTS, LENGTH, GAP = 600, 1500, 100


def exceedances(claimed_variance: float) -> int:
    """How many outputs are further from the limit than 3/4 of the normal law allows."""
    # one long sequence: prompts are a hundred tokens apart, and forget each other
    tokens = VECTOR.sample(PROMPTS * (LENGTH + GAP), generator(10))
    prompts = tokens.reshape(PROMPTS, LENGTH + GAP, 2)[:, :LENGTH]
    weights = torch.softmax(prompts @ HEAD.tilt(ASKING), dim=-1)
    outputs = (weights.unsqueeze(-1) * prompts).sum(1) @ HEAD.value.mT
    deviations = (outputs - HEAD.output(VECTOR.marginal, ASKING)).squeeze(-1)
    return int((deviations.abs() > 1.1503 * claimed_variance**0.5).sum())


@pytest.mark.statistical
def test_spread_of_a_vector_autoregression_is_not_refuted_by_drawn_sequences(alpha):
    """A quarter is beyond 1.15 standard deviations; 0.03 is left to finite length."""
    claim = long_run_moments(HEAD, VECTOR, ASKING, LENGTH).mean_square_error
    found = exceedances(claim)
    assert not refutes(found, PROMPTS, 0.25 + 0.03, alpha)
    assert not refutes(PROMPTS - found, PROMPTS, 0.75 + 0.03, alpha)


@pytest.mark.statistical
def test_spread_of_independent_tokens_is_refuted_by_drawn_sequences(alpha):
    claim = delta_method(HEAD, VECTOR.marginal, ASKING, LENGTH).mean_square_error
    assert refutes(exceedances(claim), PROMPTS, 0.25 + 0.03, alpha)
