import dataclasses

import numpy as np
import pytest
import torch

from largeprompt.icl.flow import Loss, gradient_flow
from largeprompt.icl.law_splines import law_splines
from largeprompt.icl.limit_flow import balanced, theory_task
from largeprompt.icl.polynomial_risk import PolynomialRisk
from largeprompt.icl.presets import decaying_cov
from largeprompt.icl.softmax_risk import SoftmaxRisk
from largeprompt.icl.stability import (
    Stability,
    seen_variances,
    segment_hessian,
    stability,
)
from largeprompt.icl.wide_points import weighted_quantiles, wide_points

DIM = 2
COV = decaying_cov(DIM, 0.5)
TASK = theory_task(COV)
TIMES = np.linspace(0, 4, 33).tolist()
START = balanced(0.3 * torch.eye(DIM, dtype=torch.float64))
LIMIT = Loss(PolynomialRisk(TASK), START, loss_factor=0.5)
LENGTHS = (200, 3200, 10**6)


@pytest.fixture(scope="module")
def watched() -> dict[int, Stability]:
    (points,) = wide_points(1024, 2 * DIM, torch.Generator().manual_seed(0))
    limit_flow = gradient_flow(LIMIT, TIMES)
    found = {}
    for n, law in zip(LENGTHS, law_splines(LENGTHS), strict=True):
        risk = SoftmaxRisk(TASK, law, points)
        loss = dataclasses.replace(LIMIT, risk=risk)
        found[n] = stability(loss, LIMIT, gradient_flow(loss, TIMES), limit_flow)
    return found


@pytest.mark.parametrize("n", LENGTHS)
def test_distance_to_the_limit_flow_stays_below_both_envelopes(watched, n):
    seen = watched[n]
    assert (seen.distance[1:] > 0).all()
    assert (seen.distance <= seen.envelope * (1 + 1e-4) + 1e-9).all()
    assert (seen.envelope <= seen.gronwall * (1 + 1e-9)).all()


@pytest.mark.parametrize("n", LENGTHS)
def test_an_envelope_of_half_the_gradient_gap_is_violated(watched, n):
    seen = watched[n]
    assert (seen.distance > seen.envelope / 2).any()


def test_distance_falls_with_the_prompt_length_and_the_first_gap_like_one_over_n(
    watched,
):
    short, middle, long = (watched[n] for n in LENGTHS)
    assert (short.distance[1:] > middle.distance[1:]).all()
    assert (middle.distance[1:] > long.distance[1:]).all()
    ratio = middle.gradient_gap[0] / long.gradient_gap[0]
    assert abs(ratio / (10**6 / 3200) - 1) < 0.05


def test_segment_hessian_carries_the_difference_of_gradients():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, DIM * DIM + 1))
    difference = LIMIT.gradient(a) - LIMIT.gradient(b)
    np.testing.assert_allclose(
        segment_hessian(LIMIT, a, b) @ (a - b), difference, rtol=1e-4, atol=1e-4
    )


def test_seen_variances_are_those_of_the_tokens_through_the_head():
    (points,) = wide_points(64, 2 * DIM, torch.Generator().manual_seed(1))
    task = dataclasses.replace(TASK, noise_variance=0.3)
    risk = SoftmaxRisk(task, law_splines([20])[0], points)
    merged = np.random.default_rng(2).normal(size=12)
    full, v = merged[:9].reshape(3, 3), merged[9:]
    logits, values = risk.logit_variances(merged), risk.value_variances(merged)
    S = COV.numpy()
    for k in range(64):
        w, u = risk.w[k], full @ risk.queries[k]
        cov = np.block([[S, (S @ w)[:, None]], [w @ S, w @ S @ w + 0.3]])
        np.testing.assert_allclose(logits[k], u @ cov @ u)
        np.testing.assert_allclose(values[k], v @ cov @ v)


def test_seen_variances_grow_as_the_head_learns():
    (points,) = wide_points(1024, 2 * DIM, torch.Generator().manual_seed(0))
    risk = SoftmaxRisk(TASK, law_splines([200])[0], points)
    flow = gradient_flow(dataclasses.replace(LIMIT, risk=risk), [0.0, 10.0])
    seen = seen_variances(risk, flow)
    assert seen["logits"].shape == seen["values"].shape == (2, 3)
    assert (np.diff(seen["logits"], axis=1) > 0).all()
    assert seen["logits"][1, 0] > seen["logits"][0, 0]


def test_weighted_quantiles_with_equal_weights_are_quantiles():
    values, levels = np.random.default_rng(0).normal(size=37), np.array([0.1, 0.5, 0.9])
    np.testing.assert_array_equal(
        weighted_quantiles(values, np.full(37, 2.5), levels),
        np.quantile(values, levels, method="inverted_cdf"),
    )


def test_flows_that_do_not_match_are_refused():
    other = dataclasses.replace(LIMIT, like=balanced(torch.eye(DIM).double()))
    flow = gradient_flow(LIMIT, [0.0, 1.0])
    with pytest.raises(ValueError, match="same times"):
        stability(LIMIT, LIMIT, flow, gradient_flow(LIMIT, [0.0, 2.0]))
    with pytest.raises(ValueError, match="same start"):
        stability(LIMIT, other, flow, flow)
