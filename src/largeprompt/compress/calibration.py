r"""Fit a set's linear limit to what real queries see of the set.

While its tokens are held a set answers tilts $u$ exactly. The linear limit has the same
form with moments for coefficients; here the coefficients are fitted to exact answers,
by least squares that starts from the moments.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from largeprompt.audit.limits import Answer

TINY = 1e-30


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Sight:
    r"""What `g * m` tilts see of `n` tokens: weights $e^{\ell_j - \max\ell}$.

    A token's weights lie side by side, so that choosing tokens copies whole rows.
    """

    peak: Float[Tensor, "g m"]
    weight: Float[Tensor, "n g*m"]

    def of(self, members: Bool[Tensor, " n"], value: Float[Tensor, "n v"]) -> Answer:
        """Answer for the tokens in `members` exactly; an empty set has no mass."""
        return self._answer(self._total(_with_ones(value[members]), members))

    def whole(self, value: Float[Tensor, "n v"]) -> Float[Tensor, "g*m v"]:
        """Return what all tokens add to the output: weighted values, not normalised."""
        return self.weight.mT @ value

    def nested(
        self,
        order: Int64[Tensor, " n"],
        counts: Sequence[int],
        value: Float[Tensor, "n v"],
    ) -> list[tuple[Answer, Answer]]:
        """Answer for the first `c` tokens of an order and for all others, for each `c`.

        Each token is weighed once, and what is added is never taken away again: a set
        of little mass keeps its digits.

        Args:
            order: The tokens, those in every set first.
            counts: The numbers `c`, not decreasing.
            value: The values of all tokens.
        """
        one = _with_ones(value)
        edges = [0, *counts]
        steps = (order[a:b] for a, b in itertools.pairwise(edges))
        parts = [self._total(one[step], step) for step in steps]
        others = one.index_fill(0, order[: edges[-1]], 0)
        parts.append(self.weight.mT @ others)
        first = itertools.accumulate(parts[:-1])
        last = list(itertools.accumulate(reversed(parts[1:])))[::-1]
        return [
            (self._answer(a), self._answer(b)) for a, b in zip(first, last, strict=True)
        ]

    def _total(
        self,
        value: Float[Tensor, "c w"],
        tokens: Bool[Tensor, " n"] | Int64[Tensor, " c"],
    ) -> Float[Tensor, "g*m w"]:
        return self.weight[tokens].mT @ value

    def _answer(self, total: Float[Tensor, "g*m w"]) -> Answer:
        """Return the mass and mean of weighted values beside weighted ones."""
        output, mass = total.view(*self.peak.shape, -1).split(
            [total.shape[-1] - 1, 1], -1
        )
        mass = mass.clamp_min(TINY)
        return Answer(mass[..., 0].log() + self.peak, output / mass)


def _with_ones(value: Float[Tensor, "n v"]) -> Float[Tensor, "n v+1"]:
    return torch.cat([value, torch.ones_like(value[:, :1])], -1)


def look(
    tilt: Float[Tensor, "g m k"],
    key: Float[Tensor, "n k"],
    hidden: Bool[Tensor, "m n"] | None,
) -> Sight:
    """Look at all tokens but the hidden ones."""
    logits = key @ tilt.flatten(0, 1).mT
    if hidden is not None:
        logits.masked_fill_(hidden.mT.repeat(1, len(tilt)), -torch.inf)
    peak = logits.amax(0)
    return Sight(peak.view(tilt.shape[:2]), logits.sub_(peak).exp_())


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
