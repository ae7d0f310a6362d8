r"""How far training at a finite length strays from the flow of the limit.

Write $\theta_n$, $\theta_\infty$ for the flows of the two losses from one start and
$\delta = \|\theta_n - \theta_\infty\|$. As $\nabla L_\infty(\theta_n) -
\nabla L_\infty(\theta_\infty) = \bar H\, (\theta_n - \theta_\infty)$ with $\bar H$ the
mean Hessian over the segment,

$$ \dot\delta \le g(t) + \beta(t)\, \delta, \qquad
   g = \|\nabla L_n(\theta_n) - \nabla L_\infty(\theta_n)\|, \quad
   \beta = -\lambda_{\min}(\bar H) . $$

With suprema in place of $g$ and of $\|\bar H\| \ge \beta$ this is Gronwall's
$\delta \le g\, t\, e^{\beta t}$ (Boursier and Boyer (2026), Theorem 4.3, Lemma D.1).
"""

import dataclasses
from typing import final

import numpy as np
from numpy.polynomial import legendre

from largeprompt.icl.flow import Loss, Trajectory
from largeprompt.icl.risk import Array
from largeprompt.icl.softmax_risk import SoftmaxRisk
from largeprompt.icl.wide_points import weighted_quantiles

QUANTILES = (0.5, 0.9, 0.99)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Stability:
    r"""The stability theorem, watched at the checkpoints of two flows.

    Attributes:
        times: The checkpoints.
        distance: $\|\theta_n - \theta_\infty\|$.
        gradient_gap: $g$.
        growth: $\beta$; negative where the limit contracts.
        lipschitz: $\|\bar H\|$.
        envelope: The solution of $\dot e = g + \beta e$ with the larger of $g$ and
            $\beta$ at the two ends of each interval: an envelope as far as they are
            monotone between checkpoints.
        gronwall: $g\, t\, e^{\beta t}$ with the suprema so far of $g$ and $\|\bar H\|$.
    """

    times: Array
    distance: Array
    gradient_gap: Array
    growth: Array
    lipschitz: Array
    envelope: Array
    gronwall: Array


def stability(
    finite: Loss, limit: Loss, flow: Trajectory, limit_flow: Trajectory
) -> Stability:
    """Compare the flow of a finite length with that of the limit, checkpoint by one.

    Args:
        finite: The loss at the finite length.
        limit: The loss in the limit, a polynomial in the parameters.
        flow: The flow of `finite`.
        limit_flow: The flow of `limit`, from the same start at the same times.

    Raises:
        ValueError: The times or the starts differ.
    """
    here, there = flow.flat, limit_flow.flat
    if not np.array_equal(flow.times, limit_flow.times):
        raise ValueError("both flows must be recorded at the same times; got others")
    if not np.array_equal(finite.like.flat().numpy(), limit.like.flat().numpy()):
        raise ValueError("both flows must have the same start; got two")
    gaps, growths, norms = [], [], []
    for a, b in zip(here, there, strict=True):
        gaps.append(np.linalg.norm(finite.gradient(a) - limit.gradient(a)))
        spectrum = np.linalg.eigvalsh(segment_hessian(limit, a, b))
        growths.append(-spectrum[0])
        norms.append(np.abs(spectrum).max())
    times, gap = flow.times, np.array(gaps)
    growth, norm = np.array(growths), np.array(norms)
    with np.errstate(over="ignore"):  # the envelope of the theorem is soon infinite
        gronwall = (
            np.maximum.accumulate(gap)
            * times
            * np.exp(np.maximum.accumulate(norm) * times)
        )
    return Stability(
        times=times,
        distance=np.linalg.norm(here - there, axis=1),
        gradient_gap=gap,
        growth=growth,
        lipschitz=norm,
        envelope=_envelope(times, gap, growth),
        gronwall=gronwall,
    )


def segment_hessian(loss: Loss, start: Array, end: Array) -> Array:
    """Return the mean of the Hessian over a segment, by four Gauss-Legendre nodes.

    Exact for the limit loss, of degree at most eight in the parameters.
    """
    nodes, weights = legendre.leggauss(4)
    places = [start + (node + 1) / 2 * (end - start) for node in nodes]
    hessians = np.stack([loss.hessian(place) for place in places])
    return np.tensordot(weights / 2, hessians, axes=1)


def seen_variances(risk: SoftmaxRisk, flow: Trajectory) -> dict[str, Array]:
    r"""Return quantiles of what a head sees of a prompt, at every checkpoint.

    Given the task and the query, logits and values of a prompt are normal: their
    variances $u^\top G_w u$ and $v^\top G_w v$ are their squared sub-Gaussian norms
    (proxy variances), exactly. Over tasks and queries these are random; quantiles at
    50%, 90% and 99%, of shape (times, 3).

    Raises:
        ValueError: A logit variance is above 400.
    """
    seen = {
        "logits": [risk.logit_variances(m) for m in flow.merged],
        "values": [risk.value_variances(m) for m in flow.merged],
    }
    levels = np.array(QUANTILES)
    return {
        name: np.array([weighted_quantiles(v, risk.weights, levels) for v in variances])
        for name, variances in seen.items()
    }


def _envelope(times: Array, gap: Array, growth: Array) -> Array:
    """Integrate an interval at a time, with the larger coefficient of its two ends."""
    envelope = np.zeros_like(times)
    steps = np.diff(times)
    sources, rates = np.maximum(gap[1:], gap[:-1]), np.maximum(growth[1:], growth[:-1])
    envelope[0] = gap[0] * times[0]
    for k, (step, source, rate) in enumerate(zip(steps, sources, rates, strict=True)):
        grown = np.exp(rate * step)
        spread = np.expm1(rate * step) / rate if rate else step
        envelope[k + 1] = grown * envelope[k] + source * spread
    return envelope
