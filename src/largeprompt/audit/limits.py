r"""Attention over a set of tokens, and the linear limit of the same set.

Both answer for a set $S$ of tokens with its *log-mass*
$\log \sum_{j \in S} e^{\ell_j}$ and its *output* $\sum_{j \in S} w_j v_j$, so that sets
answered either way merge in log space.
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

Scalars = Float[Tensor, "*batch"]
Outputs = Float[Tensor, "*batch v"]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Answer:
    """What a set of tokens answers to a query."""

    log_mass: Scalars
    output: Outputs


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Moments:
    r"""The moments of a set of tokens as one query sees them, divided by the count.

    Attributes:
        count: $|S|$.
        logit_mean: $\bar\ell$, the mean of the logits $\ell_j$.
        logit_variance: $s^2$, their variance.
        value_mean: $\bar v$, the mean of the values.
        shift: $\mathrm{Cov}(v, k) q = \overline{(\ell - \bar\ell) v}$.
    """

    count: Scalars
    logit_mean: Scalars
    logit_variance: Scalars
    value_mean: Outputs
    shift: Outputs

    def limit(self) -> Answer:
        r"""Return the linear limit: the answer of Gaussian tokens with these moments.

        Log-mass $\log |S| + \bar\ell + s^2/2$, output
        $\bar v + \mathrm{Cov}(v, k) q$ (Boursier and Boyer (2026), Lemma 2.1, for
        joint key/value tokens). An empty set has log-mass $-\infty$.
        """
        log_mass = self.count.log() + self.logit_mean + self.logit_variance / 2
        return Answer(log_mass, self.value_mean + self.shift)


def merge(one: Answer, other: Answer) -> Outputs:
    """Return the output over the union of two disjoint sets."""
    share = torch.sigmoid(one.log_mass - other.log_mass)[..., None]
    return share * one.output + (1 - share) * other.output
