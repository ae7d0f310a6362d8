"""The tokens that are not kept, as one calibrated linear set."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.calibration import weighted_ridge
from largeprompt.compress.sets import LinearSets
from largeprompt.compress.summary import Summary

POINTS = 25  # of the tables of the gain
BEYOND = 1.25  # the tables reach so many times as far as the calibration's tilts
FLOOR = 0.1  # of the mean weight: no calibration query counts for nothing
GAIN_PENALTY = 1e-4


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Axes:
    r"""Coordinates $z = D u$ in which the tilts are white and $s^2 = \sum \lambda z^2$.

    Attributes:
        directions: D.
        variances: $\lambda$.
        lift: $D^+$, the tilts from their coordinates: $u \approx D^+ z$.
    """

    directions: Float[Tensor, "r k"]
    variances: Float[Tensor, " r"]
    lift: Float[Tensor, "k r"]


def query_axes(
    tilt: Float[Tensor, "m k"],
    covariance: Float[Tensor, "k k"],
    rank: int,
    ridge: float,
) -> Axes:
    r"""Return the directions of Cov(k) that the tilts see most of.

    With $S$ the tilts' second moment plus a ridge, the leading eigenvectors of
    $S^{1/2} \mathrm{Cov}(k) S^{1/2}$ (docs/theory.md, equation (14.5)).
    """
    tilt = tilt.double()
    second = tilt.mT @ tilt / len(tilt)
    second.diagonal().add_(ridge * second.diagonal().mean() + 1e-30)
    scales, basis = torch.linalg.eigh(second)
    root = basis * scales.sqrt() @ basis.mT
    inverse = basis / scales.sqrt() @ basis.mT
    strengths, axes = torch.linalg.eigh(root @ covariance.double() @ root)
    axes, strengths = axes[:, -rank:], strengths[-rank:].clamp_min(0)
    return Axes((axes.mT @ inverse).float(), strengths.float(), (root @ axes).float())


def calibrated_set(
    tilt: Float[Tensor, "g m k"],
    summary: Summary,
    rest: Answer,
    beside: Answer,
    rank: int,
    ridge: float,
) -> LinearSets:
    """Return the set that stands for the tokens that are not kept.

    Args:
        tilt: The tilts to calibrate on.
        summary: The moments of these tokens.
        rest: What the tilts see of them.
        beside: What they see of the tokens that are kept.
        rank: Directions of the set.
        ridge: Penalty on a response that leaves its Gaussian value.
    """
    axes = query_axes(
        tilt.flatten(0, 1), summary.key_covariance, min(rank, tilt.shape[-1]), ridge
    )
    share = torch.sigmoid(rest.log_mass - beside.log_mass)[..., None]
    size = torch.lerp(beside.output, rest.output, share).norm(dim=-1).clamp_min(1e-30)
    share = share[..., 0]
    apart = (rest.output - beside.output).norm(dim=-1)
    z = tilt @ axes.directions.mT
    s = (axes.variances * z.square()).sum(-1).sqrt()

    reach = BEYOND * s.max() + 1e-6
    excess = rest.log_mass - summary.count.log() - tilt @ summary.key_mean
    base, gain = calibrated_gain(s, excess, share * (1 - share) * apart / size, reach)
    fit = weighted_ridge(
        torch.cat([torch.ones_like(z[..., :1]), z], -1).flatten(0, 1),
        rest.output.flatten(0, 1),
        influence(share / size).flatten(),
        torch.cat([summary.value_mean[None], (summary.response @ axes.lift).mT]),
        ridge,
    )
    return LinearSets(
        base=(summary.count.log() + base)[:, None],
        key_mean=summary.key_mean[None],
        value_mean=fit[:1],
        directions=axes.directions[None],
        variances=axes.variances[None],
        responses=fit[None, 1:].mT,
        gain=gain[:, None],
        damping=torch.ones_like(gain)[:, None],
        reach=reach[None],
    )


def calibrated_gain(
    s: Float[Tensor, "g m"],
    excess: Float[Tensor, "g m"],
    matters: Float[Tensor, "g m"],
    reach: Float[Tensor, ""],
) -> tuple[Float[Tensor, " g"], Float[Tensor, "g t"]]:
    r"""Fit log-masses by $\alpha + \beta s^2/2 + \gamma s$; return alpha and the table.

    Each query head has its own three numbers; the linear limit's are 0, 1, 0.
    """
    points = torch.linspace(0, 1, POINTS, device=s.device) * reach
    base, gain = [], []
    for one, target, weight in zip(s, excess, influence(matters), strict=True):
        features = torch.stack([torch.ones_like(one), one.square() / 2, one], -1)
        limit = one.new_tensor([[0.0], [1.0], [0.0]])
        alpha, beta, gamma = weighted_ridge(
            features, target[:, None], weight, limit, GAIN_PENALTY
        )[:, 0]
        base.append(alpha)
        gain.append(beta * points.square() / 2 + gamma * points)
    return torch.stack(base), torch.stack(gain)


def influence(matters: Float[Tensor, "g m"]) -> Float[Tensor, "g m"]:
    """Return least-squares weights: squares, with a floor."""
    square = matters.square()
    return square + FLOOR * square.mean() + 1e-30


def empty_set(
    group: int, k: int, v: int, rank: int, device: torch.device
) -> LinearSets:
    """Return a set without tokens: its log-mass is minus infinity."""

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(shape, device=device)

    return LinearSets(
        base=zeros(group, 1) - torch.inf,
        key_mean=zeros(1, k),
        value_mean=zeros(1, v),
        directions=zeros(1, rank, k),
        variances=zeros(1, rank),
        responses=zeros(1, v, rank),
        gain=zeros(group, 1, POINTS),
        damping=zeros(group, 1, POINTS),
        reach=zeros(1) + 1,
    )
