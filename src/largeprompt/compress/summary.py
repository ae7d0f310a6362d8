r"""Moments of a set of tokens that merge: what its linear limit needs.

Two disjoint sets are summarised one after the other and merged exactly, so that a
prompt may stream past. Accumulators are float32 and centred: a key channel with a
large bias loses no digits.
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Summary:
    r"""Moments of orders 0, 1 and 2 of sets of tokens $(k_j, v_j)$, in float32.

    Attributes:
        count: How many tokens; zero for an empty set, whose moments are zeros.
        key_mean: $\bar k$.
        value_mean: $\bar v$.
        key_scatter: $\sum_j (k_j - \bar k)(k_j - \bar k)^\top$.
        value_scatter: $\sum_j (v_j - \bar v)(k_j - \bar k)^\top$.
    """

    count: Float[Tensor, "*b"]
    key_mean: Float[Tensor, "*b k"]
    value_mean: Float[Tensor, "*b v"]
    key_scatter: Float[Tensor, "*b k k"]
    value_scatter: Float[Tensor, "*b v k"]

    @property
    def key_covariance(self) -> Float[Tensor, "*b k k"]:
        r"""Return $\mathrm{Cov}(k)$, divided by the count."""
        return self.key_scatter / self._divisor

    @property
    def response(self) -> Float[Tensor, "*b v k"]:
        r"""Return $\mathrm{Cov}(v, k)$: what the linear limit multiplies a tilt by."""
        return self.value_scatter / self._divisor

    @property
    def _divisor(self) -> Float[Tensor, "*b 1 1"]:
        return self.count.clamp_min(1)[..., None, None]

    def merge(self, other: "Summary") -> "Summary":
        r"""Return the summary of the union with a disjoint set.

        With shares $p, q$ of the two counts the means mix and the scatters add to
        $p\,q\,(n + n')\,\Delta\Delta^\top$, $\Delta$ the difference of the means
        (docs/theory.md, equation (14.1)).
        """
        count = self.count + other.count
        share = other.count / count.clamp_min(1)
        key_step = other.key_mean - self.key_mean
        value_step = other.value_mean - self.value_mean
        between = (self.count * share)[..., None, None]
        return Summary(
            count=count,
            key_mean=self.key_mean + share[..., None] * key_step,
            value_mean=self.value_mean + share[..., None] * value_step,
            key_scatter=self.key_scatter
            + other.key_scatter
            + between * key_step[..., :, None] * key_step[..., None, :],
            value_scatter=self.value_scatter
            + other.value_scatter
            + between * value_step[..., :, None] * key_step[..., None, :],
        )


def summarise(
    key: Float[Tensor, "*b n k"],
    value: Float[Tensor, "*b n v"],
    members: Bool[Tensor, "*b n"],
) -> Summary:
    """Summarise the tokens in `members`, a boolean mask; the others leave no trace.

    Args:
        key: Keys of any floating dtype.
        value: Values.
        members: Which tokens belong to the set.
    """
    inside = members.to(torch.float32)[..., None]
    keep = members[..., None]
    key = key.to(torch.float32).masked_fill(~keep, 0)  # padding may hold infinities
    value = value.to(torch.float32).masked_fill(~keep, 0)
    count = inside.sum((-2, -1))
    divisor = count.clamp_min(1)[..., None]
    key_mean, value_mean = key.sum(-2) / divisor, value.sum(-2) / divisor
    key = (key - key_mean[..., None, :]) * inside
    value = (value - value_mean[..., None, :]) * inside
    return Summary(count, key_mean, value_mean, key.mT @ key, value.mT @ key)
