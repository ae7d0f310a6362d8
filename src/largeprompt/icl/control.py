"""Averages over points, made sharper by functions whose means are known."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Averaged(NamedTuple):
    """A function at the points of several replicates, and its controls.

    Attributes:
        rest: $f$ at the points of each replicate.
        controls: $h$ at the same points.
        expected: $E h$, exact.
    """

    rest: Float[Tensor, "replicates count"]
    controls: Float[Tensor, "replicates count k"]
    expected: Float[Tensor, " k"]


def controlled_means(
    values: Float[Tensor, "replicates count"],
    controls: Float[Tensor, "replicates count k"],
    expected: Float[Tensor, " k"],
) -> Float[Tensor, " replicates"]:
    r"""Return the mean of `values` in each replicate, controls subtracted.

    $$ \bar f_r - \beta_{-r} \cdot (\bar h_r - E h), $$

    with the regression $\beta_{-r}$ of $f$ on $h$ fitted on the other replicates: the
    estimate stays unbiased.

    Args:
        values: $f$ at the points of each replicate.
        controls: $h$ at the same points.
        expected: $E h$, exact.
    """
    count = len(values)
    means, levels = values.mean(-1), controls.mean(-2)
    centred = controls - levels.unsqueeze(-2)
    gram = torch.einsum("rmk,rml->rkl", centred, centred)
    cross = torch.einsum("rmk,rm->rk", centred, values - means.unsqueeze(-1))
    others = 1.0 - torch.eye(count, dtype=values.dtype)
    gram, cross = torch.einsum("rs,skl->rkl", others, gram), others @ cross
    # controls may depend on each other linearly: the pseudo-inverse shares them out
    scale = gram.diagonal(dim1=-2, dim2=-1).clamp(min=1e-300).sqrt()
    correlation = gram / (scale.unsqueeze(-1) * scale.unsqueeze(-2))
    inverse = torch.linalg.pinv(correlation, rtol=1e-9, hermitian=True)
    slopes = (inverse @ (cross / scale).unsqueeze(-1)).squeeze(-1) / scale
    return means - (slopes * (levels - expected)).sum(-1)
