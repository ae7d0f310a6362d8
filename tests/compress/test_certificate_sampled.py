"""Balls from draws hold the output as often as they say; planted lies do not."""

import dataclasses

import pytest
import torch

from largeprompt.audit.limits import Answer
from largeprompt.compress.certificate import Certificate, Status
from largeprompt.compress.certificate_asymptotic import asymptotic_certificate
from largeprompt.compress.certificate_control import (
    RIDGE,
    AffineValues,
    controlled_certificate,
)
from largeprompt.compress.certificate_envelope import EightBitKeys, LogitEnvelope
from largeprompt.compress.certificate_open import opened
from largeprompt.compress.certificate_proven import proven_certificate
from largeprompt.compress.certificate_tokens import HeldTokens
from largeprompt.testing import close, refutes

TRIALS = 2000
DRAWS = 60
DELTAS = [0.05, 0.2]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@dataclasses.dataclass(frozen=True, eq=False)
class Scene:
    """One head, one query asked `TRIALS` times; the first `exact` tokens are kept."""

    key: torch.Tensor
    value: torch.Tensor
    tilt: torch.Tensor
    exact: int

    @property
    def repeated(self) -> torch.Tensor:
        return self.tilt.expand(TRIALS, -1)

    @property
    def output(self) -> torch.Tensor:
        return (self.key @ self.tilt).softmax(0) @ self.value

    @property
    def kept(self) -> Answer:
        logits = self.key[: self.exact] @ self.tilt
        output = logits.softmax(0) @ self.value[: self.exact]
        return Answer(logits.logsumexp(0).expand(TRIALS), output.expand(TRIALS, -1))

    @property
    def closed(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self.key[self.exact :], self.value[self.exact :]


def scene(logit_deviation: float) -> Scene:
    """Gaussian keys; values partly affine in them."""
    g = seeded(1)
    key = torch.randn(410, 6, generator=g, dtype=torch.float64)
    noise = torch.randn(410, 5, generator=g, dtype=torch.float64)
    tilt = torch.full((6,), logit_deviation / 6**0.5, dtype=torch.float64)
    return Scene(key, 0.8 * key[:, :5] + noise, tilt, exact=10)


def hidden() -> Scene:
    """One token in a thousand holds half of the mass and another value."""
    g = seeded(2)
    key = torch.randn(1000, 1, generator=g, dtype=torch.float64) / 10
    key[0], key[777] = 0, float(torch.tensor(1000.0).log())
    value = torch.randn(1000, 2, generator=g, dtype=torch.float64) / 10
    value[777] = 5.0
    return Scene(key, value, torch.ones(1, dtype=torch.float64), exact=1)


def uniform(s: Scene, delta: float) -> Certificate:
    tokens = HeldTokens.of(*s.closed)
    equal = torch.zeros(TRIALS, len(tokens.key), dtype=torch.float64)
    return asymptotic_certificate(
        s.repeated, tokens, equal, s.kept, DRAWS, delta, seeded(3)
    )


def by_keys(s: Scene, delta: float) -> Certificate:
    tokens = HeldTokens.of(*s.closed)
    envelope = LogitEnvelope.exact(s.repeated, tokens.key)
    return proven_certificate(
        s.repeated, tokens, envelope, s.kept, DRAWS, delta, seeded(3)
    )


def by_eight_bits(s: Scene, delta: float) -> Certificate:
    tokens = HeldTokens.of(*s.closed)
    envelope = EightBitKeys.of(tokens.key).envelope(s.repeated)
    return proven_certificate(
        s.repeated, tokens, envelope, s.kept, DRAWS, delta, seeded(3)
    )


def by_opening(s: Scene, delta: float) -> Certificate:
    tokens = HeldTokens.of(*s.closed)
    wide = EightBitKeys.of(tokens.key).envelope(s.repeated)
    envelope, kept = opened(s.repeated, tokens, wide, s.kept, 20)
    return proven_certificate(
        s.repeated, tokens, envelope, kept, DRAWS, delta, seeded(3)
    )


def by_residuals(s: Scene, delta: float) -> Certificate:
    values = AffineValues.fit(*s.closed)
    envelope = LogitEnvelope.exact(s.repeated, values.residual.key)
    return controlled_certificate(
        s.repeated, values, envelope, s.kept, DRAWS, delta, seeded(3)
    )


PROVEN = [by_keys, by_eight_bits, by_opening, by_residuals]


def misses(ball: Certificate, output: torch.Tensor) -> int:
    return int(((ball.centre - output).norm(dim=-1) > ball.radius).sum())


@pytest.mark.statistical
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("method", PROVEN)
@pytest.mark.parametrize(
    "make", [lambda: scene(1.5), hidden], ids=["gaussian", "hidden"]
)
def test_proven_balls_are_not_refuted_at_their_rate(make, method, delta, alpha):
    ball = method(make(), delta)
    assert ball.status is Status.PROVEN
    assert not refutes(misses(ball, make().output), TRIALS, delta, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize("method", PROVEN)
def test_proven_balls_shrunk_five_times_are_refuted(method, alpha):
    ball = method(scene(1.5), 0.2)
    lie = dataclasses.replace(ball, radius=ball.radius / 5)
    assert refutes(misses(lie, scene(1.5).output), TRIALS, 0.2, alpha)


@pytest.mark.statistical
@pytest.mark.parametrize("delta", DELTAS)
def test_asymptotic_balls_are_not_refuted_where_weights_are_tame(delta, alpha):
    ball = uniform(scene(0.5), delta)
    assert ball.status is Status.ASYMPTOTIC
    assert not refutes(misses(ball, scene(0.5).output), TRIALS, delta, alpha)


@pytest.mark.statistical
def test_asymptotic_balls_of_uniform_draws_are_refuted_by_a_hidden_token(alpha):
    assert refutes(misses(uniform(hidden(), 0.2), hidden().output), TRIALS, 0.2, alpha)


def test_values_affine_in_the_keys_leave_nothing_to_draw():
    s = scene(1.5)
    slope = torch.randn(5, 6, generator=seeded(4), dtype=torch.float64)
    affine = dataclasses.replace(s, value=s.key @ slope.mT + 3)
    ball, plain = by_residuals(affine, 0.05), by_keys(affine, 0.05)
    off = (ball.centre - affine.output).norm(dim=-1)
    assert (off <= ball.radius).all()
    assert (ball.radius < 2 * RIDGE * plain.radius).all()  # what the ridge leaves


def test_opening_all_but_one_token_is_exact_attention():
    s = scene(1.5)
    tokens = HeldTokens.of(*s.closed)
    tilt, kept = s.repeated[:3], Answer(s.kept.log_mass[:3], s.kept.output[:3])
    envelope = LogitEnvelope.exact(tilt, tokens.key)
    envelope, kept = opened(tilt, tokens, envelope, kept, len(tokens.key) - 1)
    ball = proven_certificate(tilt, tokens, envelope, kept, 2, 0.05, seeded(0))
    close(ball.centre, s.output.expand(3, -1))


def test_balls_with_nothing_kept_hold_attention_over_the_set():
    s = dataclasses.replace(scene(1.5), exact=0)
    tokens = HeldTokens.of(*s.closed)
    nothing = Answer(torch.full((2,), -torch.inf), torch.zeros(2, 5)).log_mass.double()
    kept = Answer(nothing, torch.zeros(2, 5, dtype=torch.float64))
    tilt = s.repeated[:2]
    envelope = LogitEnvelope.exact(tilt, tokens.key)
    ball = proven_certificate(tilt, tokens, envelope, kept, 50_000, 0.05, seeded(5))
    off = (ball.centre - s.output).norm(dim=-1)
    assert (off <= ball.radius).all()
    assert (ball.radius < 0.1 * s.output.norm()).all()


def test_batches_answer_as_their_members_do():
    g = seeded(6)
    key, value = torch.randn(3, 50, 4, generator=g), torch.randn(3, 50, 2, generator=g)
    tilt = torch.randn(3, 7, 4, generator=g)
    values = AffineValues.fit(key, value)
    envelope = EightBitKeys.of(key).envelope(tilt)
    kept = Answer(torch.zeros(3, 7), torch.zeros(3, 7, 2))
    _, whole = opened(tilt, values.residual, envelope, kept, 5)
    for head in range(3):
        mine = AffineValues.fit(key[head], value[head])
        close(mine.slope, values.slope[head])
        bounds = EightBitKeys.of(key[head]).envelope(tilt[head])
        close(bounds.upper, envelope.upper[head])
        one = Answer(kept.log_mass[head], kept.output[head])
        _, exact = opened(tilt[head], mine.residual, bounds, one, 5)
        close(exact.output, whole.output[head])


def test_draws_depend_on_the_generator_alone():
    balls = [by_keys(scene(1.5), 0.2).centre for _ in range(2)]
    assert torch.equal(*balls)
