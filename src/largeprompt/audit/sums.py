r"""Everything an audit says of a set of tokens, as sums over its tokens.

Sets that do not overlap merge by addition, so that a prefix may be read in pieces: the
memory does not depend on its length, and pieces may be read on different machines.
Logits enter less a reference $r$ that the sets share; sums of exponentials carry the
largest logit of their set along.
"""

import dataclasses
from collections.abc import Sequence
from typing import Self, final

import torch
from jaxtyping import Bool, Float64
from torch import Tensor

from largeprompt.audit.limits import Answer, Moments

Scalars = Float64[Tensor, "h m"]
Vectors = Float64[Tensor, "h m v"]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class TokenSums:
    r"""Sums over a set of tokens, for each head and query.

    With $c_j = \ell_j - r$, and $t$ the largest of them:

    Attributes:
        count: $|S|$.
        powers: $\sum c_j^p$ for $p = 1, \dots, 4$, one after the other.
        value: $\sum v_j$.
        product: $\sum c_j v_j$.
        square: $\sum \|v_j\|^2$.
        top: $t$; $-\infty$ for no token.
        mass: $\sum e^{c_j - t}$.
        mass_square: $\sum e^{2 (c_j - t)}$.
        mass_logit: $\sum e^{c_j - t} c_j$.
        mass_value: $\sum e^{c_j - t} v_j$.
    """

    count: Scalars
    powers: Float64[Tensor, "4 h m"]
    value: Vectors
    product: Vectors
    square: Scalars
    top: Scalars
    mass: Scalars
    mass_square: Scalars
    mass_logit: Scalars
    mass_value: Vectors

    def __add__(self, other: Self) -> Self:
        """Return the sums over the union of two disjoint sets."""
        top = torch.maximum(self.top, other.top)
        a = (self.top - top).exp().nan_to_num(nan=0.0)  # no token on either side
        b = (other.top - top).exp().nan_to_num(nan=0.0)
        return dataclasses.replace(
            self,
            count=self.count + other.count,
            powers=self.powers + other.powers,
            value=self.value + other.value,
            product=self.product + other.product,
            square=self.square + other.square,
            top=top,
            mass=a * self.mass + b * other.mass,
            mass_square=a * a * self.mass_square + b * b * other.mass_square,
            mass_logit=a * self.mass_logit + b * other.mass_logit,
            mass_value=a[..., None] * self.mass_value + b[..., None] * other.mass_value,
        )

    @property
    def log_mass(self) -> Scalars:
        r"""$\log \sum e^{c_j}$."""
        return self.top + self.mass.log()

    def attention(self) -> Answer:
        """Return softmax attention over the set, its log-mass less the reference."""
        return Answer(self.log_mass, self.mass_value / self.mass[..., None])

    def moments(self) -> Moments:
        """Return the moments of the set, logits less the reference; zeros for none."""
        count = self.count.clamp_min(1)
        mean = self.powers[0] / count
        value = self.value / count[..., None]
        return Moments(
            count=self.count,
            logit_mean=mean,
            logit_variance=(self.powers[1] / count - mean**2).clamp_min(0),
            value_mean=value,
            shift=self.product / count[..., None] - mean[..., None] * value,
        )

    @property
    def excess_kurtosis(self) -> Scalars:
        """The excess kurtosis of the logits; 0 where they do not vary."""
        mean, second, third, fourth = self.powers / self.count
        variance = second - mean**2
        about_mean = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
        # what rounding leaves of a logit that does not vary is no variance
        varies = variance > 1e-14 * second
        return torch.where(varies, about_mean / variance.square() - 3, 0.0)

    @property
    def value_variance(self) -> Scalars:
        r"""$\mathrm{tr}\,\mathrm{Cov}(v)$."""
        mean = self.value / self.count[..., None]
        return (self.square / self.count - mean.square().sum(-1)).clamp_min(0)


NAMES = [field.name for field in dataclasses.fields(TokenSums)]
VECTORS = {"value", "product", "mass_value"}


def sums_of_sets(
    logits: Float64[Tensor, "h m n"],
    value: Float64[Tensor, "h n v"],
    sets: Sequence[Bool[Tensor, "q n"]],
) -> list[TokenSums]:
    """Return the sums over several sets of the same tokens, computed together.

    Args:
        logits: As in `token_sums`.
        value: As there.
        sets: Which tokens belong to each set, for each query.
    """
    rows = logits.shape[1]
    group = rows // len(sets[0])
    members = torch.cat([chosen.repeat(group, 1) for chosen in sets])
    found = token_sums(logits.repeat(1, len(sets), 1), value, members)
    pieces = []
    for index in range(len(sets)):
        mine = slice(index * rows, (index + 1) * rows)
        pieces.append(
            TokenSums(
                **{
                    name: getattr(found, name)[..., mine, :]
                    if name in VECTORS
                    else getattr(found, name)[..., mine]
                    for name in NAMES
                }
            )
        )
    return pieces


def token_sums(
    logits: Float64[Tensor, "h m n"],
    value: Float64[Tensor, "h n v"],
    members: Bool[Tensor, "q n"] | None = None,
) -> TokenSums:
    """Return the sums over a set of tokens.

    Args:
        logits: The logits less the reference; `m` rows are the `q` queries of one head
            after those of the other.
        value: The values.
        members: Which tokens belong to the set, for each query; all when None.
    """
    if members is None:
        inside, outside = logits, logits
        counts = torch.full_like(logits[..., 0], logits.shape[-1])
        values = value.sum(-2, keepdim=True).expand(*counts.shape, -1)
        squares = value.square().sum((-2, -1))[:, None].expand_as(counts)
    else:
        inside, outside = (
            logits.unflatten(1, (-1, len(members)))
            .masked_fill(~members, fill)
            .flatten(1, 2)
            for fill in (0.0, -torch.inf)
        )
        group = logits.shape[1] // len(members)
        kinds = members.to(logits.dtype)
        counts = kinds.sum(-1).repeat(group).expand_as(logits[..., 0])
        values = (kinds @ value).repeat(1, group, 1)
        squares = (kinds @ value.square().sum(-1).mT).mT.repeat(1, group)
    top = outside.amax(-1)
    # a set without tokens has top -inf and no mass
    raised = (outside - top.clamp_min(torch.finfo(top.dtype).min)[..., None]).exp_()
    second = inside.square()
    dot = torch.linalg.vecdot
    return TokenSums(
        count=counts,
        powers=torch.stack(
            [inside.sum(-1), second.sum(-1), dot(second, inside), dot(second, second)]
        ),
        value=values,
        product=inside @ value,
        square=squares,
        top=top,
        mass=raised.sum(-1),
        mass_square=dot(raised, raised),
        mass_logit=dot(raised, inside),
        mass_value=raised @ value,
    )
