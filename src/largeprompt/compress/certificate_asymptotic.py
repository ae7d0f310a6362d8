r"""A certificate by the central limit theorem, from draws under any proposal.

It needs no bound on the weights and holds as the number of draws grows. How many are
enough depends on the tail of $e^{\ell_j} / p_j$, which the draws do not show: uniform
draws fail where a few tokens carry the mass.
"""

import torch
from jaxtyping import Float
from scipy import special
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.certificate import Certificate, Status, check_delta
from largeprompt.compress.certificate_tokens import HeldTokens, draw


def asymptotic_certificate(
    tilt: Float[Tensor, "*b m k"],
    tokens: HeldTokens,
    log_proposal: Float[Tensor, "*b m n"],
    kept: Answer,
    draws: int,
    delta: float,
    generator: torch.Generator,
) -> Certificate:
    r"""Return a ball that holds each head's output with probability near `1 - delta`.

    The output is estimated as a ratio with weights $W_i = e^{\ell_i} / p_i$; its
    radius is that of the Gaussian whose covariance is the sample's covariance of
    $W_i (v_i - \hat o) / \hat Z$ over $m$ (docs/theory.md, equation (15.9)).

    Args:
        tilt: Queries times the attention scale.
        tokens: The tokens of the summarised set.
        log_proposal: The logarithms of the probabilities to draw with, up to a
            constant; all equal for uniform draws.
        kept: What the tokens outside the set answer, exactly.
        draws: How many tokens to read for each query.
        delta: The probability that a ball may miss.
        generator: Where the randomness comes from.

    Raises:
        ValueError: `delta` is no probability, or `draws` is less than 2.
    """
    check_delta(delta)
    rows = draw(log_proposal, draws, generator)
    logits, values = tokens.drawn(tilt, rows)
    log_weights = logits - log_proposal.log_softmax(-1).gather(-1, rows)
    top = torch.maximum(log_weights.amax(-1), kept.log_mass)
    weights = (log_weights - top[..., None]).exp()[..., None]
    rest = (kept.log_mass - top).exp()[..., None]
    mass = rest + weights.mean(-2)
    mean = tokens.value_mean[..., None, :]
    shift = (rest * (kept.output - mean) + (weights * values).mean(-2)) / mass
    influence = weights * (values - shift[..., None, :]) / mass[..., None]
    return Certificate(
        mean + shift, gaussian_radius(influence, delta), delta, Status.ASYMPTOTIC
    )


def gaussian_radius(
    sample: Float[Tensor, "*b j v"], delta: float
) -> Float[Tensor, "*b"]:
    r"""Return the radius that a Gaussian mean of draws exceeds with chance `delta`.

    The squared norm of a Gaussian with covariance $\Sigma$ is taken as
    $\mathrm{tr}\,\Sigma$ times a chi-square over its degrees of freedom
    $\nu = (\mathrm{tr}\,\Sigma)^2 / \mathrm{tr}\,\Sigma^2$ (Satterthwaite, 1946), over
    another of $m - 1$ for the estimated trace.
    """
    draws = sample.shape[-2]
    centred = sample - sample.mean(-2, keepdim=True)
    covariance = centred.mT @ centred / (draws - 1)
    trace = covariance.diagonal(dim1=-2, dim2=-1).sum(-1)
    square = covariance.square().sum((-2, -1))
    freedom = (trace.square() / square).where(square > 0, 1.0)
    quantile = special.fdtri(freedom.numpy(force=True), draws - 1, 1 - delta)
    return (trace * torch.as_tensor(quantile).to(trace) / draws).sqrt()
