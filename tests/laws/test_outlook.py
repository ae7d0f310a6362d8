"""What else holds of a plan: proofs, longer prompts, correlated tokens, curves."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largeprompt.laws import Phase, solve
from largeprompt.laws.outlook import correlate, extend, output_bound, prove
from largeprompt.laws.plan_curves import plan_curves


@pytest.mark.parametrize("logit_variance", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("dim", [1, 5, 64])
def test_proven_length_meets_the_target_and_one_token_fewer_does_not(
    logit_variance, dim
):
    plan = solve(eps=0.05, logit_variance=logit_variance, dim=dim)
    proof = prove(plan, 0.05)
    bound = output_bound(logit_variance, dim)
    assert proof.n is not None
    assert proof.n > plan.n
    assert math.sqrt(bound.mse(proof.n)) <= 0.05 < math.sqrt(bound.mse(proof.n - 1))


@given(
    n=st.integers(1, 10**12),
    logit_variance=st.floats(0, 30),
    dim=st.integers(1, 100),
)
def test_proven_error_is_at_least_the_exact_one(n, logit_variance, dim):
    plan = solve(n=n, logit_variance=logit_variance, dim=dim)
    proof = prove(plan, plan.eps)
    assert (proof.eps is None) == (proof.obstacle != "")
    assert proof.eps is None or proof.eps >= plan.eps


def test_bound_of_the_example_is_within_a_factor_two_in_the_mean_square():
    plan = solve(n=4096, logit_variance=1.0, dim=5)
    proof = prove(plan, plan.eps)
    assert proof.eps is not None
    assert 1 < (proof.eps / plan.eps) ** 2 < 2


def test_error_that_no_prompt_proves_has_no_proven_length():
    plan = solve(n=100, logit_variance=40.0)
    assert prove(plan, 0.01).n is None
    assert "beyond" in prove(plan, 0.01).obstacle


@pytest.mark.parametrize(("n", "logit_variance"), [(7, 0.5), (300, 3.0), (60, 9.0)])
def test_drift_to_an_endless_prompt_is_the_error(n, logit_variance):
    plan = solve(n=n, logit_variance=logit_variance, dim=11)
    extension = extend(plan, 10**15)
    assert extension.drift == pytest.approx(plan.eps, rel=1e-4)
    assert extend(plan, 2 * n).drift < 0.95 * plan.eps


def test_drift_is_below_its_radius_and_what_is_proven():
    extension = extend(solve(n=5000, logit_variance=1.0), 9000)
    assert extension.proven is not None
    assert extension.drift < extension.proven
    assert extension.radius == pytest.approx(extension.drift / math.sqrt(0.05))


def test_a_prompt_cannot_be_extended_to_fewer_tokens():
    with pytest.raises(ValueError, match="more than 100 tokens; got 100"):
        extend(solve(n=100, logit_variance=1.0), 100)


def test_tokens_without_correlation_count_as_themselves():
    tokens = correlate(solve(n=777, logit_variance=2.0), 0.0)
    shares = [tokens.normaliser_share, tokens.across_share, tokens.along_share]
    assert shares == pytest.approx([1, 1, 1])
    assert tokens.n in (777, 778)  # rounded up


@given(correlation=st.floats(0.01, 0.95), logit_variance=st.floats(0, 6))
def test_correlated_tokens_needed_lie_between_those_across_and_along(
    correlation, logit_variance
):
    plan = solve(n=10**6, logit_variance=logit_variance, dim=3)
    tokens = correlate(plan, correlation)
    ends = sorted([1 / tokens.across_share, 1 / tokens.along_share])
    assert tokens.n is not None
    assert ends[0] * (1 - 1e-9) <= tokens.n / plan.n <= ends[1] * (1 + 1e-5)


def test_shares_are_those_of_the_worked_example():
    tokens = correlate(solve(n=10**5, logit_variance=0.825), 0.7)
    shares = [tokens.normaliser_share, tokens.across_share, tokens.along_share]
    assert shares == pytest.approx([0.217, 0.255, 0.312], abs=6e-4)


def test_leading_order_outside_the_linear_phase_says_that_it_is_not_reliable():
    plan = solve(n=4096, logit_variance=9.0)
    assert plan.phase is Phase.HEAVY_TAILED
    assert not correlate(plan, 0.5).reliable
    assert correlate(solve(n=4096, logit_variance=1.0), 0.5).reliable


@pytest.mark.parametrize("correlation", [1.0, -1.0, 1.5, math.nan])
def test_correlation_of_modulus_one_is_refused(correlation):
    with pytest.raises(ValueError, match="strictly between -1 and 1"):
        correlate(solve(n=100, logit_variance=1.0), correlation)


@pytest.mark.parametrize("logit_variance", [0.0, 2.0, 30.0])
def test_curves_of_a_plan_pass_through_it_in_order(logit_variance):
    plan = solve(n=5000, logit_variance=logit_variance, dim=9)
    curves = plan_curves(plan)
    here = np.exp(np.interp(math.log(5000), np.log(curves.n), np.log(curves.exact)))
    assert here == pytest.approx(plan.eps, rel=2e-3)
    assert (curves.bound >= curves.exact).all()
    assert curves.edges == (
        pytest.approx(math.exp(logit_variance / 2)),
        pytest.approx(math.exp(2 * logit_variance)),
    )
