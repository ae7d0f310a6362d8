"""What certificates are made of: balls, envelopes, radii; and what they refuse."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from largeprompt.audit.limits import Answer
from largeprompt.compress.certificate import Certificate, Status
from largeprompt.compress.certificate_asymptotic import gaussian_radius
from largeprompt.compress.certificate_control import (
    AffineValues,
    controlled_certificate,
)
from largeprompt.compress.certificate_envelope import EightBitKeys, LogitEnvelope
from largeprompt.compress.certificate_open import opened
from largeprompt.compress.certificate_proven import mean_radius, proven_certificate
from largeprompt.compress.certificate_tokens import HeldTokens
from largeprompt.testing import close, refutes

KEPT = Answer(torch.zeros(2), torch.zeros(2, 3))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def tokens() -> HeldTokens:
    g = seeded(0)
    return HeldTokens.of(torch.randn(9, 4, generator=g), torch.randn(9, 3, generator=g))


@given(
    seed=st.integers(0, 2**31 - 1), scale=st.floats(0, 30), bias=st.floats(-1e3, 1e3)
)
def test_eight_bit_envelopes_hold_every_logit(seed, scale, bias):
    g = seeded(seed)
    key = torch.randn(2, 30, 5, generator=g, dtype=torch.float64)
    key[..., 0] += bias
    key[..., 1] = 2.0  # a channel that does not vary
    tilt = scale * torch.randn(2, 3, 5, generator=g, dtype=torch.float64)
    envelope = EightBitKeys.of(key).envelope(tilt)
    logits = tilt @ key.mT
    rounding = 1e-12 * (1 + logits.abs().amax())
    assert (logits <= envelope.upper + rounding).all()
    lower = envelope.upper - envelope.width[..., None]
    assert (logits >= lower - rounding).all()


def test_eight_bit_keys_weigh_a_quarter_of_float32():
    key = torch.randn(4096, 64, generator=seeded(1))
    assert EightBitKeys.of(key).nbytes < 0.26 * key.nbytes


def test_an_envelope_half_as_wide_misses_a_logit():
    key = torch.rand(500, 2, generator=seeded(2), dtype=torch.float64)
    tilt = torch.ones(1, 2, dtype=torch.float64)
    envelope = EightBitKeys.of(key).envelope(tilt)
    centre = envelope.upper - envelope.width[..., None] / 2
    assert ((tilt @ key.mT - centre).abs() > envelope.width[..., None] / 4).any()


def test_mean_radius_is_its_formula():
    sample = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).double()
    variance, c, delta = np.var(sample.numpy(), axis=0, ddof=1).sum(), 2**0.5, 0.1
    root = 0.5 * c * math.sqrt(math.log(20) / 2)
    root += math.sqrt(variance + c * c * math.log(20) / 8)
    expected = root * math.sqrt(2 * math.log(40) / 4) + c * math.log(40) / 12
    actual = mean_radius(sample, torch.tensor(c).double(), delta)
    close(actual, torch.tensor(expected).double())


@pytest.mark.statistical
@pytest.mark.parametrize("chance", [0.5, 0.01])
def test_mean_radius_is_not_refuted_by_corners_of_a_cube(chance, alpha):
    trials, delta = 20_000, 0.2
    sample = (torch.rand(trials, 40, 3, generator=seeded(3)) < chance).double()
    radius = mean_radius(sample, torch.tensor(3**0.5).double(), delta)
    missed = (sample.mean(-2) - chance).norm(dim=-1) > radius
    assert not refutes(int(missed.sum()), trials, delta, alpha)


@pytest.mark.statistical
def test_mean_radius_without_its_range_is_refuted_by_rare_corners(alpha):
    trials, delta = 20_000, 0.2
    sample = (torch.rand(trials, 40, 3, generator=seeded(3)) < 0.01).double()
    radius = mean_radius(sample, torch.tensor(0.0).double(), delta)
    missed = (sample.mean(-2) - 0.01).norm(dim=-1) > radius
    assert refutes(int(missed.sum()), trials, delta, alpha)


def test_gaussian_radius_is_students_interval_in_one_dimension():
    sample = torch.randn(12, 1, generator=seeded(4), dtype=torch.float64)
    expected = stats.t.isf(0.025, 11) * float(sample.std()) / 12**0.5
    close(gaussian_radius(sample, 0.05), torch.tensor(expected).double())


def test_gaussian_radius_of_equal_vectors_is_zero():
    close(gaussian_radius(torch.ones(2, 5, 3), 0.05), torch.zeros(2))


def test_errors_follow_from_the_triangle():
    ball = Certificate(
        torch.tensor([[3.0, 4.0]]), torch.tensor([1.0]), 0.05, Status.PROVEN
    )
    answer = torch.tensor([[3.0, 2.0]])
    close(ball.error(answer), torch.tensor([3.0]))
    close(ball.relative_error(answer), torch.tensor([0.75]))
    wide = dataclasses.replace(ball, radius=torch.tensor([5.0]))
    assert wide.relative_error(answer).isinf().all()


@given(seed=st.integers(0, 2**31 - 1))
def test_errors_bound_every_output_inside_the_ball(seed):
    g = seeded(seed)
    centre, radius = torch.randn(8, 3, generator=g), torch.rand(8, generator=g)
    step = torch.nn.functional.normalize(torch.randn(8, 3, generator=g), dim=-1)
    output = centre + 0.999 * radius[:, None] * step
    answer = torch.randn(8, 3, generator=g)
    ball = Certificate(centre, radius, 0.05, Status.PROVEN)
    off = (answer - output).norm(dim=-1)
    assert (off <= ball.error(answer)).all()
    assert (off / output.norm(dim=-1) <= ball.relative_error(answer) * (1 + 1e-5)).all()


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1])
def test_certificates_refuse_what_is_no_probability(delta):
    tilt = torch.zeros(2, 4)
    envelope = LogitEnvelope.exact(tilt, tokens().key)
    with pytest.raises(ValueError, match="strictly between 0 and 1; got"):
        proven_certificate(tilt, tokens(), envelope, KEPT, 5, delta, seeded(0))


def test_certificates_refuse_a_single_draw_and_an_empty_set():
    tilt = torch.zeros(2, 4)
    envelope = LogitEnvelope.exact(tilt, tokens().key)
    with pytest.raises(ValueError, match="draws must be at least 2; got 1"):
        proven_certificate(tilt, tokens(), envelope, KEPT, 1, 0.1, seeded(0))
    with pytest.raises(ValueError, match="at least one token; got none"):
        HeldTokens.of(torch.zeros(0, 4), torch.zeros(0, 3))


@pytest.mark.parametrize("count", [-1, 9])
def test_opening_refuses_more_tokens_than_leave_one_closed(count):
    tilt = torch.zeros(2, 4)
    envelope = LogitEnvelope.exact(tilt, tokens().key)
    with pytest.raises(ValueError, match=r"count must lie in \[0, 9\); got"):
        opened(tilt, tokens(), envelope, KEPT, count)


def test_control_refuses_logits_that_are_not_known():
    values = AffineValues.fit(tokens().key, tokens().value)
    tilt = torch.ones(2, 4)
    rounded = EightBitKeys.of(tokens().key).envelope(tilt)
    with pytest.raises(ValueError, match="known exactly; got a width"):
        controlled_certificate(tilt, values, rounded, KEPT, 5, 0.1, seeded(0))


def test_control_survives_keys_that_do_not_vary():
    values = AffineValues.fit(torch.ones(6, 4), tokens().value[:6])
    close(values.slope, torch.zeros(3, 4))
