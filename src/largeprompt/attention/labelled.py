r"""A token law as a head sees it: its logit, and its moments given the logit.

Everything the finite-prompt law needs of a measure and a tilt is a label that decides
the logit, and the token's mean and covariance given the label. A measure joins by
registering here; its moments are then exact at any prompt length.
"""

import dataclasses
import functools
from typing import final

import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from largeprompt.laws.projections import normal_rule, sphere_rule
from largeprompt.measures import Gaussian, Measure, Mixture, Prompt, UniformSphere
from largeprompt.measures.algebra import Pushforward

NO_VARIANCE = 1e-300  # a logit variance below it is zero


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LabelledTokens:
    r"""Labels with their probabilities, logits and conditional moments.

    Given label $a$ a token has the mean $\sum_r c_{ar} D_r$ and the covariance
    $\sum_j \gamma_{aj} C_j$. All in float64.

    Attributes:
        probability: The probability of each label.
        logit: $u \cdot x$, the same for every token of a label.
        coordinates: $c$.
        directions: $D$, one a row.
        scales: $\gamma \ge 0$.
        covariances: $C$.
    """

    probability: Float[Tensor, " labels"]
    logit: Float[Tensor, " labels"]
    coordinates: Float[Tensor, "labels r"]
    directions: Float[Tensor, "r d"]
    scales: Float[Tensor, "labels j"]
    covariances: Float[Tensor, "j d d"]


@functools.singledispatch
def labelled(measure: Measure, tilt: Float[Tensor, " d"]) -> LabelledTokens | None:
    """Return the tokens of a measure with labels that decide their logits.

    Known for Gaussians, finite sets of atoms, uniform spheres, and mixtures and affine
    images of these: radial mixtures of spheres are elliptical laws. None for others.

    Args:
        measure: The law of a token.
        tilt: The vector $u$.
    """
    del measure, tilt
    return None


@labelled.register
def _(measure: Gaussian, tilt: Float[Tensor, " d"]) -> LabelledTokens | None:
    mean, cov, tilt = measure.mean.double(), measure.cov.double(), tilt.double()
    shift = cov @ tilt
    variance = float(tilt @ shift)
    if variance < NO_VARIANCE:
        shift, scale = torch.zeros_like(shift), 0.0
    else:
        scale = variance**0.5
        shift = shift / scale
    rule = normal_rule(scale)
    nodes, probability = _tensor(rule.nodes), _tensor(rule.probability)
    return LabelledTokens(
        probability=probability,
        logit=tilt @ mean + scale * nodes,
        coordinates=torch.stack([torch.ones_like(nodes), nodes], dim=-1),
        directions=torch.stack([mean, shift]),
        scales=torch.ones_like(nodes).unsqueeze(-1),
        covariances=(cov - torch.outer(shift, shift)).unsqueeze(0),
    )


@labelled.register
def _(measure: Prompt, tilt: Float[Tensor, " d"]) -> LabelledTokens | None:
    held = measure.log_weights > -torch.inf
    atoms = measure.atoms[held].double()
    return LabelledTokens(
        probability=measure.log_weights[held].double().exp(),
        logit=atoms @ tilt.double(),
        coordinates=atoms,
        directions=torch.eye(measure.dim, dtype=atoms.dtype),
        scales=atoms.new_zeros(len(atoms), 1),
        covariances=atoms.new_zeros(1, measure.dim, measure.dim),
    )


@labelled.register
def _(measure: UniformSphere, tilt: Float[Tensor, " d"]) -> LabelledTokens | None:
    center, tilt = measure.center.double(), tilt.double()
    radius, dim = float(measure.radius), measure.dim
    size = float(tilt.norm())
    axis = tilt / size if size > 0 else torch.eye(dim, dtype=tilt.dtype)[0]
    rule = sphere_rule(dim, radius * size)
    nodes, probability = _tensor(rule.nodes), _tensor(rule.probability)
    across = radius**2 * (torch.eye(dim, dtype=axis.dtype) - torch.outer(axis, axis))
    return LabelledTokens(
        probability=probability,
        logit=tilt @ center + radius * size * nodes,
        coordinates=torch.stack([torch.ones_like(nodes), nodes], dim=-1),
        directions=torch.stack([center, radius * axis]),
        scales=((1 - nodes.square()) / max(dim - 1, 1)).unsqueeze(-1),
        covariances=across.unsqueeze(0),
    )


@labelled.register
def _(measure: Mixture, tilt: Float[Tensor, " d"]) -> LabelledTokens | None:
    parts = []
    for component in measure.components:
        if (part := labelled(component, tilt)) is None:
            return None
        parts.append(part)
    weights = measure.log_weights.double().exp()
    return LabelledTokens(
        probability=torch.cat(
            [w * part.probability for w, part in zip(weights, parts, strict=True)]
        ),
        logit=torch.cat([part.logit for part in parts]),
        coordinates=torch.block_diag(*(part.coordinates for part in parts)),
        directions=torch.cat([part.directions for part in parts]),
        scales=torch.block_diag(*(part.scales for part in parts)),
        covariances=torch.cat([part.covariances for part in parts]),
    )


@labelled.register
def _(measure: Pushforward, tilt: Float[Tensor, " d"]) -> LabelledTokens | None:
    weight, bias = measure.map.weight.double(), measure.map.bias.double()
    base = labelled(measure.base, tilt.double() @ weight)
    if base is None:
        return None
    ones = base.coordinates.new_ones(len(base.logit), 1)
    return dataclasses.replace(
        base,
        logit=base.logit + tilt.double() @ bias,
        coordinates=torch.cat([base.coordinates, ones], dim=-1),
        directions=torch.cat([base.directions @ weight.mT, bias.unsqueeze(0)]),
        covariances=weight @ base.covariances @ weight.mT,
    )


def _tensor(values: NDArray) -> Tensor:
    return torch.as_tensor(values, dtype=torch.float64)
