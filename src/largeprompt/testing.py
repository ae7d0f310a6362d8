"""Public checks of contracts, for the measures of this library and for yours."""

import math

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.stats import binom
from torch import Tensor

from largeprompt.measures import Measure, autodiff


def close(actual: Tensor, expected: Tensor) -> None:
    """Assert that two tensors agree, within the default tolerance of their dtype."""
    torch.testing.assert_close(actual, expected)


def assert_is_measure(measure: Measure, tilts: Float[Tensor, "*batch d"]) -> None:
    r"""Check the identities that tie the methods of a measure together.

    $\Lambda(0) = 0$; $\Lambda > -\infty$; `tilted_mean` is $\nabla\Lambda$ and
    `tilted_cov` is $\nabla^2\Lambda$, both by differentiating `log_mgf`; the covariance
    is symmetric and positive semidefinite; where $\Lambda = +\infty$ both are
    $+\infty$; draws have the right shape and depend on the generator alone. A wrong
    `log_mgf` with consistent derivatives passes: compare it with an integral too.

    Args:
        measure: The measure to check.
        tilts: Where to check it; some may lie outside its domain.

    Raises:
        AssertionError: If an identity fails, beyond the tolerance of `close`.
    """
    cumulant = measure.log_mgf(tilts)
    mean, cov = measure.tilted_mean(tilts), measure.tilted_cov(tilts)
    assert tilts.shape[-1] == measure.dim, "tilts live in the measure's dimension"
    assert not cumulant.isnan().any(), "log_mgf is never NaN"
    assert not cumulant.isneginf().any(), "log_mgf is never minus infinity"
    close(measure.log_mgf(torch.zeros_like(tilts)), torch.zeros_like(cumulant))
    close(mean, autodiff.tilted_mean(measure, tilts))
    close(cov, autodiff.tilted_cov(measure, tilts))
    inside = cumulant.isfinite()
    assert mean[inside].isfinite().all(), "tilted_mean is finite inside the domain"
    assert cov[inside].isfinite().all(), "tilted_cov is finite inside the domain"
    close(cov, cov.mT)
    lowest = torch.linalg.eigvalsh(cov[inside])[..., 0]
    close(lowest.clamp(max=0), torch.zeros_like(lowest))
    _assert_draws_follow_the_generator(measure, tilts.device)


def refutes(violations: int, trials: int, delta: float, alpha: float) -> bool:
    """Return whether the count refutes P(violation) <= `delta` at level `alpha`.

    An exact binomial test: if the claim holds and the trials are independent, the
    answer is yes with probability at most `alpha`.

    Args:
        violations: How many trials violated the bound.
        trials: How many independent trials there were.
        delta: The claimed probability of a violation.
        alpha: The false-alarm probability to spend.
    """
    return bool(binom.sf(violations - 1, trials, delta) <= alpha)


def refutes_mean(values: ArrayLike, claim: float, width: float, alpha: float) -> bool:
    """Return whether values of a bounded range refute that their mean is `claim`.

    The empirical Bernstein inequality (Maurer and Pontil, 2009, Theorem 4), on both
    sides: if the claim holds and the values are independent and lie in an interval of
    length `width`, the answer is yes with probability at most `alpha`, at any sample
    size. It is sharp when the variance is small beside the range.

    Args:
        values: The sample, one value a trial.
        claim: The claimed mean.
        width: The length of an interval that holds every value.
        alpha: The false-alarm probability to spend.
    """
    values = np.asarray(values, dtype=float)
    log_term = math.log(4 / alpha)  # two sides, two events each
    radius = math.sqrt(2 * values.var(ddof=1) * log_term / len(values))
    radius += 7 * width * log_term / (3 * (len(values) - 1))
    return bool(abs(values.mean() - claim) > radius)


def _assert_draws_follow_the_generator(measure: Measure, device: torch.device) -> None:
    """Check the shape of draws, and that a generator's state determines them."""
    seeded = [torch.Generator(device=device).manual_seed(0) for _ in range(2)]
    first, second = (measure.sample(3, generator) for generator in seeded)
    assert first.shape == (3, measure.dim), "sample(n) has shape [n, dim]"
    assert torch.equal(first, second), "equal generators give equal draws"
