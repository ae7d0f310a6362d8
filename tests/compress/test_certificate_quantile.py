"""Conformal radii: exact under exchangeability, and what drift does to them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from largeprompt.compress.certificate import Status
from largeprompt.compress.quantile import (
    conformal_radius,
    held_out_certificate,
    summarised_share,
    weighted_conformal_radius,
)
from largeprompt.testing import close, refutes

TRIALS = 20_000
DELTAS = [0.05, 0.2]


def errors(count: int, seed: int = 0) -> torch.Tensor:
    """Exponential errors, the last of each row the next query's."""
    g = torch.Generator().manual_seed(seed)
    return -torch.rand(TRIALS, count + 1, generator=g, dtype=torch.float64).log()


@pytest.mark.statistical
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("count", [20, 63])
def test_conformal_radius_is_not_refuted_at_its_rate(count, delta, alpha):
    drawn = errors(count)
    missed = drawn[:, -1] > conformal_radius(drawn[:, :-1], delta)
    assert not refutes(int(missed.sum()), TRIALS, delta, alpha)


@pytest.mark.statistical
def test_the_plain_quantile_of_held_out_errors_is_refuted(alpha):
    drawn = errors(20)
    rank = math.ceil(0.95 * 20)
    plain = drawn[:, :-1].kthvalue(rank, dim=-1).values
    missed = int((drawn[:, -1] > plain).sum())
    assert refutes(missed, TRIALS, 0.05, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", DELTAS)
def test_weighted_radius_is_not_refuted_without_drift(delta, alpha):
    drawn = errors(63)
    weights = 0.97 ** torch.arange(62, -1, -1, dtype=torch.float64)
    missed = drawn[:, -1] > weighted_conformal_radius(drawn[:, :-1], weights, delta)
    assert not refutes(int(missed.sum()), TRIALS, delta, alpha)


@pytest.mark.statistical
def test_under_drift_recent_weights_hold_where_equal_ones_are_refuted(alpha):
    trend = torch.linspace(0, 3, 200, dtype=torch.float64).exp()
    drawn = errors(199) * trend
    past, following = drawn[:, :-1], drawn[:, -1]
    weights = 0.9 ** torch.arange(198, -1, -1, dtype=torch.float64)
    equal = int((following > conformal_radius(past, 0.2)).sum())
    recent = int((following > weighted_conformal_radius(past, weights, 0.2)).sum())
    assert refutes(equal, TRIALS, 0.2, alpha)
    assert not refutes(recent, TRIALS, 0.2, alpha)


@given(
    seed=st.integers(0, 2**31 - 1),
    count=st.integers(1, 60),
    delta=st.floats(0.01, 0.99),
)
def test_equal_weights_are_the_plain_radius(seed, count, delta):
    drawn = torch.rand(count, generator=torch.Generator().manual_seed(seed))
    weighted = weighted_conformal_radius(drawn, torch.ones(count).double(), delta)
    close(weighted, conformal_radius(drawn, delta))


def test_nineteen_errors_are_enough_for_one_in_twenty_and_eighteen_are_not():
    drawn = torch.rand(19, generator=torch.Generator().manual_seed(1))
    close(conformal_radius(drawn, 0.05), drawn.max())
    assert conformal_radius(drawn[:18], 0.05).isinf()


def test_radii_refuse_what_is_no_probability_or_no_weight():
    drawn = torch.rand(9)
    with pytest.raises(ValueError, match="strictly between 0 and 1; got 1"):
        conformal_radius(drawn, 1.0)
    with pytest.raises(ValueError, match=r"weights must lie in \[0, 1\]"):
        weighted_conformal_radius(drawn, torch.full((9,), 1.5), 0.1)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", DELTAS)
def test_held_out_balls_are_not_refuted_where_shares_drift(delta, alpha):
    drawn, trend = errors(63), torch.linspace(0.1, 0.9, 64, dtype=torch.float64)
    ball = held_out_certificate(
        torch.zeros(TRIALS, 1, 2, dtype=torch.float64),
        trend[-1:].expand(TRIALS, 1),
        (drawn[:, :-1] * trend[:-1])[:, None],
        trend[:-1].expand(TRIALS, 1, -1),
        delta,
    )
    assert ball.status is Status.EXCHANGEABLE
    missed = drawn[:, -1] * trend[-1] > ball.radius[:, 0]
    assert not refutes(int(missed.sum()), TRIALS, delta, alpha)


@pytest.mark.statistical
def test_held_out_errors_without_their_shares_are_refuted_there(alpha):
    drawn, trend = errors(63), torch.linspace(0.1, 0.9, 64, dtype=torch.float64)
    scaled = drawn * trend
    missed = scaled[:, -1] > conformal_radius(scaled[:, :-1], 0.2)
    assert refutes(int(missed.sum()), TRIALS, 0.2, alpha)


def passages(rehearsals: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Errors of passages, each with a scale of its own; and those of one more."""
    generator = torch.Generator().manual_seed(5)
    shape = (TRIALS, rehearsals + 1)
    scale = torch.randn(*shape, 1, generator=generator, dtype=torch.float64).exp()
    drawn = scale * torch.rand(*shape, 63, generator=generator, dtype=torch.float64)
    return drawn[:, :-1], drawn[:, -1]


def too_many(rehearsals: int) -> int:
    """How often more than a fifth of a new passage lies outside the balls."""
    past, following = passages(rehearsals)
    nothing = torch.zeros(TRIALS, 63, 2, dtype=torch.float64)
    ball = held_out_certificate(
        nothing, torch.ones_like(following), past, torch.ones_like(past), 0.2
    )
    return int(((following > ball.radius).double().mean(-1) > 0.2).sum())


@pytest.mark.statistical
@pytest.mark.parametrize("rehearsals", [1, 2, 5])
def test_the_widest_rehearsal_covers_passages_at_its_rate(rehearsals, alpha):
    missed = too_many(rehearsals)
    assert not refutes(missed, TRIALS, 1 / (rehearsals + 1), alpha)


@pytest.mark.statistical
def test_one_rehearsal_does_not_cover_passages_as_two_do(alpha):
    assert refutes(too_many(1), TRIALS, 1 / 3, alpha)


def test_shares_are_those_of_the_masses_and_never_zero():
    exact = torch.tensor([1.0, 2.0, 2.0]).double().log()
    whole = torch.tensor([4.0, 2.5, 2.0]).double().log()
    shares = summarised_share(exact, whole)
    close(shares[:2], torch.tensor([0.75, 0.2]).double())
    assert 0 < shares[2] < 1e-12
