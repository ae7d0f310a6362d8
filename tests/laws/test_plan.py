"""Planning: exactly one unknown, solved exactly."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from largeprompt.errors import UnreachableTargetError
from largeprompt.laws import (
    Phase,
    frozen_length,
    linear_length,
    phase,
    smallest_n,
    solve,
)
from largeprompt.laws.plan import isotropic_error


@pytest.mark.parametrize("logit_variance", [0.0, 0.5, 2.0, 9.0])
@pytest.mark.parametrize("eps", [0.9, 0.3, 0.05, 0.01])
def test_solved_n_meets_the_target_and_one_token_fewer_does_not(logit_variance, eps):
    plan = solve(eps=eps, logit_variance=logit_variance, dim=64)
    assert plan.n <= 1e8
    assert plan.eps == isotropic_error(plan.n, logit_variance, 64) <= eps
    assert isotropic_error(plan.n - 1, logit_variance, 64) > eps


@pytest.mark.parametrize(("logit_variance", "eps"), [(16.0, 0.01), (25.0, 0.03)])
def test_solved_n_beyond_1e8_is_right_to_nine_digits(logit_variance, eps):
    n = solve(eps=eps, logit_variance=logit_variance).n
    assert n > 1e8
    assert isotropic_error(n * (1 - 1e-9), logit_variance, 64) > eps
    assert isotropic_error(n * (1 + 1e-9), logit_variance, 64) < eps


@given(n=st.integers(2, 10**12), logit_variance=st.floats(0.01, 60))
def test_solving_for_the_logit_variance_inverts_solving_for_the_error(
    n, logit_variance
):
    forward = solve(n=n, logit_variance=logit_variance, dim=7)
    back = solve(n=n, eps=forward.eps, dim=7)
    assert back.logit_variance == pytest.approx(logit_variance, rel=1e-6)
    assert back.eps <= forward.eps


def test_uniform_weights_need_one_over_eps_squared_tokens():
    assert solve(eps=0.05, logit_variance=0).n == 400


def test_a_target_met_by_one_token_answers_one():
    assert solve(eps=1.5, logit_variance=9, dim=64).n == 1


def test_an_unreachable_target_says_so():
    with pytest.raises(UnreachableTargetError, match="no prompt of up to 1e"):
        solve(eps=0.01, logit_variance=100)
    with pytest.raises(UnreachableTargetError, match=r"uniform weights leave 0\.1"):
        solve(n=100, eps=0.09)
    with pytest.raises(UnreachableTargetError, match="every logit variance up to 400"):
        solve(n=100, eps=50.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one of n, eps and logit_variance must be left out"),
        ({"n": 3}, "got eps, logit_variance left out"),
        ({"n": 3, "eps": 0.1, "logit_variance": 1.0}, "got none left out"),
        ({"n": 3, "eps": 0.1, "dim": 0}, "dim must be at least 1; got 0"),
        ({"n": 3, "eps": -0.1}, "eps must be a number above 0; got -0.1"),
        ({"n": 3, "eps": math.nan}, "eps must be a number above 0; got nan"),
        ({"n": 0, "logit_variance": 1.0}, "n must be a number from 1"),
        ({"eps": 0.1, "logit_variance": -1.0}, "logit_variance must be a number from"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        solve(**arguments)


@given(root=st.floats(1, 1e15), power=st.floats(0.05, 1.0))
def test_smallest_n_finds_the_root_of_any_decreasing_power(root, power):
    n = smallest_n(lambda size: size**-power, root**-power)
    assert math.ceil(root * (1 - 1e-12)) <= n <= math.ceil(root * (1 + 1e-12))


@pytest.mark.parametrize(
    ("n", "logit_variance", "expected"),
    [
        (1, 0.0, Phase.LINEAR),
        (1, 0.1, Phase.FROZEN),
        (1000, 3.4, Phase.LINEAR),
        (1000, 3.5, Phase.HEAVY_TAILED),
        (1000, 13.8, Phase.HEAVY_TAILED),
        (1000, 13.9, Phase.FROZEN),
    ],
)
def test_phase_follows_the_random_energy_boundaries(n, logit_variance, expected):
    assert phase(n, logit_variance) is expected


@given(logit_variance=st.floats(0.1, 15))
def test_phase_changes_at_the_stated_lengths(logit_variance):
    linear, frozen = linear_length(logit_variance), frozen_length(logit_variance)
    assert phase(linear * 1.001, logit_variance) is Phase.LINEAR
    assert phase(linear / 1.001, logit_variance) is Phase.HEAVY_TAILED
    assert phase(frozen * 1.001, logit_variance) is Phase.HEAVY_TAILED
    assert phase(max(1.0, frozen / 1.001), logit_variance) is Phase.FROZEN


def test_a_boundary_length_beyond_floats_is_infinite():
    assert linear_length(400.0) == math.inf


def test_phase_refuses_what_is_no_prompt():
    with pytest.raises(ValueError, match="n must be a number of at least 1; got 0"):
        phase(0, 1.0)
    with pytest.raises(ValueError, match="logit_variance must be a number of at least"):
        phase(10, math.nan)
