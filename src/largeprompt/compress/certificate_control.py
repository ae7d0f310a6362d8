r"""The affine surrogate as a control variate of the values.

A set's values are roughly affine in its keys, which is what makes its linear limit
work: $v_j = f(k_j) + \varepsilon_j$, $f(k) = \bar v + B (k - \bar k)$. Under any
weights $w$ that sum to 1

$$ \sum_j w_j v_j = f\Big(\sum_j w_j k_j\Big) + \sum_j w_j \varepsilon_j , $$

so that where the keys are read only the residuals need to be drawn (docs/theory.md,
section 15.3).
"""

import dataclasses
from typing import Self, final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.certificate import Certificate
from largeprompt.compress.certificate_envelope import LogitEnvelope
from largeprompt.compress.certificate_proven import proven_certificate
from largeprompt.compress.certificate_tokens import HeldTokens

RIDGE = 1e-3  # of the mean variance of a key's channels


@final
@dataclasses.dataclass(frozen=True, eq=False)
class AffineValues:
    """Values as an affine map of keys.

    Attributes:
        key_mean: The mean key.
        value_mean: The mean value.
        slope: B.
        residual: The tokens with what the map leaves of their values.
    """

    key_mean: Float[Tensor, "*b k"]
    value_mean: Float[Tensor, "*b v"]
    slope: Float[Tensor, "*b v k"]
    residual: HeldTokens

    @classmethod
    def fit(cls, key: Float[Tensor, "*b n k"], value: Float[Tensor, "*b n v"]) -> Self:
        """Fit the map by ridge regression over the tokens of a set."""
        key_mean, value_mean = key.mean(-2), value.mean(-2)
        centred = key - key_mean[..., None, :]
        gram = centred.mT @ centred
        ridge = RIDGE * gram.diagonal(dim1=-2, dim2=-1).mean(-1)
        # keys that do not vary leave nothing to fit: the tiny floor keeps it solvable
        ridge = ridge.clamp_min(torch.finfo(key.dtype).tiny)
        gram = gram + ridge[..., None, None] * torch.eye(key.shape[-1]).to(gram)
        slope = torch.linalg.solve(gram, centred.mT @ value).mT
        residual = value - value_mean[..., None, :] - centred @ slope.mT
        return cls(key_mean, value_mean, slope, HeldTokens.of(key, residual))

    def __call__(self, key: Float[Tensor, "*b m k"]) -> Float[Tensor, "*b m v"]:
        """Return the map's values at some keys."""
        centred = key - self.key_mean[..., None, :]
        return self.value_mean[..., None, :] + centred @ self.slope.mT


def controlled_certificate(
    tilt: Float[Tensor, "*b m k"],
    values: AffineValues,
    envelope: LogitEnvelope,
    kept: Answer,
    draws: int,
    delta: float,
    generator: torch.Generator,
) -> Certificate:
    """Return a proven ball from known logits and the residuals of a few values.

    Args:
        tilt: Queries times the attention scale.
        values: The affine map of the set's values, with its tokens.
        envelope: The exact logits, less the tokens that were opened.
        kept: What the tokens outside the set answer, exactly.
        draws: How many values to read for each query.
        delta: The probability that a ball may miss.
        generator: Where the randomness comes from.

    Raises:
        ValueError: The logits are not known exactly, `delta` is no probability, or
            `draws` is less than 2.
    """
    if bool((envelope.width > 0).any()):
        widest = float(envelope.width.max())
        raise ValueError(f"logits must be known exactly; got a width of {widest:.3g}")
    known = values(envelope.upper.softmax(-1) @ values.residual.key)
    rest = Answer(kept.log_mass, kept.output - known)
    ball = proven_certificate(
        tilt, values.residual, envelope, rest, draws, delta, generator
    )
    return dataclasses.replace(ball, centre=ball.centre + known)
