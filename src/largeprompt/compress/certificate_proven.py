r"""A certificate that holds for every prompt, from draws under bounded logits.

With an envelope $h_j \ge \ell_j$ and draws from $p_j = e^{h_j} / M$, where
$M = \sum_j e^{h_j}$, the ratios $r_j = e^{\ell_j - h_j}$ lie in $[e^{-w}, 1]$ and

$$ \sum_j e^{\ell_j} = M\, E\,r, \qquad
   \sum_j e^{\ell_j} (v_j - \bar v) = M\, E\,[r (v - \bar v)] $$

are means of bounded variables (derived in docs/theory.md, section 15.2).
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.certificate import Certificate, Status, check_delta
from largeprompt.compress.certificate_envelope import LogitEnvelope
from largeprompt.compress.certificate_tokens import HeldTokens, draw

MASS_SHARE = 0.1  # of delta, spent on the mass; its radius is far the smaller one


def proven_certificate(
    tilt: Float[Tensor, "*b m k"],
    tokens: HeldTokens,
    envelope: LogitEnvelope,
    kept: Answer,
    draws: int,
    delta: float,
    generator: torch.Generator,
) -> Certificate:
    r"""Return a ball that holds each head's output with probability `1 - delta`.

    Up to rounding, for every prompt and every number of draws: docs/theory.md,
    equation (15.7).

    Args:
        tilt: Queries times the attention scale.
        tokens: The tokens of the summarised set.
        envelope: Bounds on all their logits.
        kept: What the tokens outside the set answer, exactly.
        draws: How many values to read for each query.
        delta: The probability that a ball may miss.
        generator: Where the randomness comes from.

    Raises:
        ValueError: `delta` is no probability, or `draws` is less than 2.
    """
    check_delta(delta)
    rows = draw(envelope.upper, draws, generator)
    logits, values = tokens.drawn(tilt, rows)
    ratio = (logits - envelope.upper.gather(-1, rows)).exp().clamp(max=1)
    lowest = (-envelope.width).exp()
    mass_radius = mean_radius(ratio[..., None], 1 - lowest, MASS_SHARE * delta)
    parts = ratio[..., None] * values
    reach = 2 * tokens.value_reach[..., None]
    values_radius = mean_radius(parts, reach, (1 - MASS_SHARE) * delta)

    log_total = envelope.upper.logsumexp(-1)
    top = torch.maximum(log_total, kept.log_mass)
    rest, total = (kept.log_mass - top).exp(), (log_total - top).exp()
    mean = tokens.value_mean[..., None, :]
    moment = rest[..., None] * (kept.output - mean) + total[..., None] * parts.mean(-2)
    shift = moment / (rest + total * ratio.mean(-1))[..., None]
    least = torch.maximum(ratio.mean(-1) - mass_radius, lowest)
    off = values_radius + torch.linalg.vector_norm(shift, dim=-1) * mass_radius
    radius = total * off / (rest + total * least)
    return Certificate(mean + shift, radius, delta, Status.PROVEN)


def mean_radius(
    sample: Float[Tensor, "*b j v"], diameter: Float[Tensor, "*#b"], delta: float
) -> Float[Tensor, "*b"]:
    r"""Return how far the mean of draws is from its expectation, but for `delta`.

    $$ \sigma_+ \sqrt{\tfrac{2 L}{m}} + \tfrac{c L}{3 m}, \quad \sigma_+ =
       \tfrac c2 \sqrt{\tfrac{L'}{k}} + \sqrt{\hat V + \tfrac{c^2 L'}{4 k}}, $$

    $L = \log(4/\delta)$, $L' = \log(2/\delta)$, $k = \lfloor m/2 \rfloor$, $\hat V$ the
    sample's variance summed over coordinates: Bernstein's inequality in a Hilbert
    space with an upper bound in place of the variance. Free of the dimension.

    Args:
        sample: `m` independent vectors.
        diameter: $c$, the diameter of a set that holds every vector.
        delta: The probability that the mean is farther off.

    Cites:
        [pinelis:94], Theorem 3.4; the variance is derived in docs/theory.md,
        section 15.2.
    """
    draws = sample.shape[-2]
    variance = sample.var(-2).sum(-1)
    log_mean, log_variance = math.log(4 / delta), math.log(2 / delta)
    slack = diameter * math.sqrt(log_variance / (draws // 2)) / 2
    deviation = slack + (variance + slack.square()).sqrt()
    linear = diameter * log_mean / (3 * draws)
    return deviation * math.sqrt(2 * log_mean / draws) + linear
