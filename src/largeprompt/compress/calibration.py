r"""Fit a set's linear limit to what real queries see of the set.

While its tokens are held a set answers tilts $u$ exactly. The linear limit has the same
form with moments for coefficients; here the coefficients are fitted to exact answers,
by least squares that starts from the moments.
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from largeprompt.audit.limits import Answer

TINY = 1e-30


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Sight:
    r"""What `g * m` tilts see of `n` tokens: weights $e^{\ell_j - \max\ell}$."""

    peak: Float[Tensor, "g m"]
    weight: Float[Tensor, "g m n"]

    def of(self, members: Bool[Tensor, " n"], value: Float[Tensor, "n v"]) -> Answer:
        """Answer for the tokens in `members` exactly; an empty set has no mass."""
        if 2 * int(members.sum()) < len(members):
            weight, value = self.weight[..., members], value[members]
        else:
            weight = self.weight * members.to(self.weight.dtype)
        mass = weight.sum(-1).clamp_min(TINY)
        return Answer(mass.log() + self.peak, weight @ value / mass[..., None])


def look(
    tilt: Float[Tensor, "g m k"],
    key: Float[Tensor, "n k"],
    hidden: Bool[Tensor, "m n"] | None,
) -> Sight:
    """Look at all tokens but the hidden ones."""
    logits = tilt @ key.mT
    if hidden is not None:
        logits.masked_fill_(hidden, -torch.inf)
    peak = logits.amax(-1)
    return Sight(peak, logits.sub_(peak[..., None]).exp_())


def weighted_ridge(
    features: Float[Tensor, "m p"],
    target: Float[Tensor, "m q"],
    weight: Float[Tensor, " m"],
    prior: Float[Tensor, "p q"],
    penalty: float,
) -> Float[Tensor, "p q"]:
    r"""Return the coefficients $B$ of the weighted ridge regression around a prior $P$.

    $$ \arg\min_B \sum_i w_i \|t_i - B^\top x_i\|^2
       + c \sum_j \overline{x_j^2} \|B_j - P_j\|^2, $$

    with weights of mean 1 and $\overline{x_j^2}$ the weighted mean square of feature j,
    so that the penalty has no unit. In float64 (docs/theory.md, equation (14.6)).
    """
    x, weight = features.double(), weight.double()
    scaled = x * (weight / weight.sum())[:, None]
    gram = scaled.mT @ x
    gram.diagonal().mul_(1 + penalty).add_(TINY)
    moment = scaled.mT @ (target.double() - x @ prior.double())
    return prior + torch.linalg.solve(gram, moment).to(prior.dtype)
