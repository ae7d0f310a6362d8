"""Correlated sequences: their draws against an exact chi-squared law."""

import itertools

import pytest
import torch
from scipy.stats import chi2

from largeprompt.measures import Gaussian
from largeprompt.measures.process import Autocorrelated, Autoregression

DRAWS, LENGTH = 300, 11


def two_dimensional() -> Gaussian:
    mean = torch.tensor([1.0, -2.0], dtype=torch.float64)
    return Gaussian(mean, torch.tensor([[1.0, 0.6], [0.6, 2.0]], dtype=torch.float64))


def rotation() -> torch.Tensor:
    return torch.tensor([[0.5, 0.3], [-0.4, 0.6]], dtype=torch.float64)


SEQUENCES = {
    "scalar autoregression": Autoregression.isotropic(two_dimensional(), -0.7),
    "vector autoregression": Autoregression(two_dimensional(), rotation()),
    "moving average": Autocorrelated(
        two_dimensional(), torch.tensor([0.4, 0.1], dtype=torch.float64)
    ),
}


def variance_of_sum(sequence, directions) -> float:
    """The variance of a weighted sum of the tokens, from the autocovariances."""
    zero = torch.zeros_like(sequence.marginal.cov)
    lags = [*itertools.islice(sequence.autocovariances(), LENGTH), *[zero] * LENGTH]
    total = torch.zeros((), dtype=torch.float64)
    for i, j in itertools.product(range(LENGTH), repeat=2):
        gamma = lags[j - i] if j >= i else lags[i - j].mT
        total += directions[i] @ gamma @ directions[j]
    return float(total)


def sum_of_squares(sequence, directions) -> float:
    """Over independent draws, the sum of squares of a centred weighted sum."""
    generator = torch.Generator().manual_seed(5)
    total = 0.0
    for _ in range(DRAWS):
        tokens = sequence.sample(LENGTH, generator) - sequence.marginal.mean
        total += float((tokens * directions).sum() ** 2)
    return total


def refutes_variance(sum_of_squares: float, variance: float, alpha: float) -> bool:
    """Whether draws refute the variance: exact, as the sum is normal."""
    statistic = sum_of_squares / variance
    return bool(min(chi2.cdf(statistic, DRAWS), chi2.sf(statistic, DRAWS)) < alpha / 2)


DIRECTIONS = {
    "all tokens alike": torch.ones(LENGTH, 2, dtype=torch.float64),
    "two neighbours": torch.eye(LENGTH, 2, dtype=torch.float64).flip(-1),
}


@pytest.mark.statistical
@pytest.mark.parametrize("directions", DIRECTIONS.values(), ids=DIRECTIONS.keys())
@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_autocovariances_are_not_refuted_by_draws(sequence, directions, alpha):
    variance = variance_of_sum(sequence, directions)
    found = sum_of_squares(sequence, directions)
    assert not refutes_variance(found, variance, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_independence_is_refuted_by_draws(sequence, alpha):
    directions = torch.ones(LENGTH, 2, dtype=torch.float64)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(LENGTH)[:LENGTH]
    if sequence is SEQUENCES["scalar autoregression"]:
        directions = directions * signs.unsqueeze(-1)
    independent = Autocorrelated(sequence.marginal, torch.zeros(0, dtype=torch.float64))
    variance = variance_of_sum(independent, directions)
    assert refutes_variance(sum_of_squares(sequence, directions), variance, alpha)


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES.keys())
def test_draws_have_the_right_shape_and_follow_the_generator(sequence):
    first, second = (
        sequence.sample(7, torch.Generator().manual_seed(1)) for _ in range(2)
    )
    assert first.shape == (7, 2)
    assert torch.equal(first, second)
    assert sequence.sample(1, torch.Generator().manual_seed(1)).shape == (1, 2)


def test_autocovariances_of_an_autoregression_obey_its_recursion():
    sequence = Autoregression(two_dimensional(), rotation())
    for now, following in itertools.pairwise(sequence.autocovariances()):
        torch.testing.assert_close(following, now @ rotation().mT)


@pytest.mark.parametrize("correlation", [1.0, -1.0, 1.2])
def test_a_correlation_of_modulus_one_is_refused(correlation):
    with pytest.raises(ValueError, match="spectral radius below 1"):
        Autoregression.isotropic(two_dimensional(), correlation)
    with pytest.raises(ValueError, match="strictly between -1 and 1"):
        Autocorrelated(
            two_dimensional(), torch.tensor([correlation], dtype=torch.float64)
        )


def test_a_transition_that_cannot_keep_the_marginal_is_refused():
    shear = torch.tensor([[0.5, 3.0], [0.0, 0.5]], dtype=torch.float64)
    with pytest.raises(ValueError, match="positive semidefinite"):
        Autoregression(two_dimensional(), shear)
    with pytest.raises(ValueError, match="shape of the covariance"):
        Autoregression(two_dimensional(), torch.zeros(3, 3, dtype=torch.float64))


def test_a_sequence_that_is_no_autocorrelation_is_refused():
    with pytest.raises(ValueError, match="spectral density"):
        Autocorrelated(two_dimensional(), torch.tensor([0.9], dtype=torch.float64))
