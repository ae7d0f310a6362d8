r"""Sets of tokens that answer a query through their linear limit.

Many tokens $(k_j, v_j)$ of one KV head are replaced by a few numbers. Asked with a tilt
$u$ (the query times the attention scale), a set answers with its log-mass
$\log \sum_j e^{u \cdot k_j}$ and its output $\sum_j w_j v_j$, both approximately:

$$ z = D u, \quad s^2 = \sum_i \lambda_i z_i^2, \quad
   \text{log-mass} = b + u \cdot \bar k + a(s), \quad
   \text{output} = \bar v + c(s) R z . $$

For Gaussian tokens $D, \lambda$ diagonalise Cov(k), $R$ holds the values' response
along each direction, $b = \log n$, $a(s) = s^2/2$ and $c = 1$; for a finite number of
them $a(s) = \int_0^s \sigma (1 - \varphi(n, \sigma)) d\sigma$ and
$c = 1 - \varphi(n, s)$ (derived in docs/theory.md). Calibration on real
queries replaces $b$, $a$ and $R$ by what fits.
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LinearSets:
    """`c` sets of tokens for each KV head; every field is a float32 tensor.

    A set of rank `r` weighs about `r + 1` tokens.

    Attributes:
        base: b, one for each of the `g` query heads that read the KV head.
        key_mean: The mean key.
        value_mean: The output at tilt 0.
        directions: D.
        variances: The eigenvalues of Cov(k), zero for a direction that does not
            count towards s.
        responses: R, one column a direction.
        gain: a at `t` equidistant points of [0, reach], continued linearly.
        damping: c at the same points, constant beyond.
        reach: The largest s of the two tables.
    """

    base: Float[Tensor, "*b g c"]
    key_mean: Float[Tensor, "*b c k"]
    value_mean: Float[Tensor, "*b c v"]
    directions: Float[Tensor, "*b c r k"]
    variances: Float[Tensor, "*b c r"]
    responses: Float[Tensor, "*b c v r"]
    gain: Float[Tensor, "*b g c t"]
    damping: Float[Tensor, "*b g c t"]
    reach: Float[Tensor, "*b c"]

    @property
    def nbytes(self) -> int:
        """The memory that the sets hold."""
        fields = dataclasses.fields(self)
        return sum(getattr(self, field.name).nbytes for field in fields)

    def answer(self, tilt: Float[Tensor, "*b g m k"]) -> Answer:
        """Answer `m` tilts for each query head: log-mass `*b g m c`, output `... v`."""
        tilt = tilt.to(self.key_mean.dtype)
        z = torch.einsum("...crk,...gmk->...gmcr", self.directions, tilt)
        s = torch.einsum("...cr,...gmcr->...gmc", self.variances, z.square()).sqrt()
        gain, damping = self._tables(s)
        log_mass = (
            self.base[..., None, :]
            + torch.einsum("...ck,...gmk->...gmc", self.key_mean, tilt)
            + gain
        )
        shift = torch.einsum("...cvr,...gmcr->...gmcv", self.responses, z)
        value_mean = self.value_mean[..., None, None, :, :]
        return Answer(log_mass, value_mean + damping[..., None] * shift)

    def _tables(
        self, s: Float[Tensor, "*b g m c"]
    ) -> tuple[Float[Tensor, "*b g m c"], Float[Tensor, "*b g m c"]]:
        """Return a(s) and c(s) by linear interpolation."""
        last = self.gain.shape[-1] - 1
        place = s * (last / self.reach[..., None, None, :])
        left = place.floor().clamp(0, last - 1)
        share = place - left  # above 1 beyond the reach: the last slope goes on

        def at(table: Float[Tensor, "*b g c t"], right: int) -> Tensor:
            index = left.long().transpose(-1, -2) + right
            return table.gather(-1, index).transpose(-1, -2)

        slope = at(self.gain, 1) - at(self.gain, 0)
        inside = share.clamp(max=1)
        return (
            at(self.gain, 0) + share * slope,
            at(self.damping, 0) * (1 - inside) + at(self.damping, 1) * inside,
        )


def merge(answers: Answer) -> Answer:
    """Merge the answers of disjoint sets: `*b c` and `*b c v` to `*b` and `*b v`."""
    log_mass = answers.log_mass.logsumexp(-1)
    share = answers.log_mass.softmax(-1)[..., None]
    return Answer(log_mass, (share * answers.output).sum(-2))
