"""How many tokens each KV head may hold: by what leaving them out costs.

A head's error curve, its error against its budget, is measured on the prompt's own last
queries. Heads that compress well give their tokens to heads that do not; a head that
gains nothing until it is whole is kept exact.

Few heads carry nearly all the damage, those that find single tokens again. They show in
the mean square of their error beside the layer's output (`HeldOut.damage`), and hardly
in the median of their relative error.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.compress.held_out import HeldOut, held_out, held_out_each
from largeprompt.compress.prompt import Compressor, LayerPrompt

# of a prompt: most heads are well served by the smallest, few need the largest
FRACTIONS = (0.01, 0.02, 0.04, 0.07, 0.12, 0.25, 0.5)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class ErrorCurves:
    """Errors of `b` KV heads at `t` budgets; where the budget is the prompt, zero.

    Attributes:
        budget: Budgets in tokens, increasing; the last is the number of tokens.
        error: The median relative error of the head's output, for an error target; its
            damage, for budgets that are shared.
    """

    budget: Float[Tensor, "b t"]
    error: Float[Tensor, "b t"]

    def meeting(self, target: float) -> Float[Tensor, " b"]:
        """Return each head's smallest budget whose error is within the target.

        An error target: what does not compress that well is kept exact.
        """
        enough = self.error <= target
        enough[:, -1] = True
        return self.budget.gather(1, enough.int().argmax(1, keepdim=True))[:, 0]

    def sharing(
        self, total: float, weight: Float[Tensor, " b"] | None = None
    ) -> Float[Tensor, " b"]:
        r"""Return budgets of sum at most `total` that lower $\sum_h w_h e_h^2$ most.

        Every head starts at its smallest budget. Then the head whose squared error
        falls most a token climbs to the corner of the lower convex hull of its curve,
        as long as the total allows. Among budgets at corners no choice of the same sum
        is better ([fox:66]); a step that does not fit is passed over.

        Args:
            total: Tokens over all heads; the smallest budgets must fit.
            weight: What a squared error of each head costs; one by default.

        Raises:
            ValueError: The smallest budgets do not fit.
        """
        cost = self.error.square()
        if weight is not None:
            cost = cost * weight[:, None]
        place = [0] * len(cost)
        spare = total - float(self.budget[:, 0].sum())
        if spare < 0:
            raise ValueError(
                f"{len(cost)} heads need {total - spare:.0f} tokens; got {total:.0f}"
            )
        steps = sorted(
            (step for head in range(len(cost)) for step in self._steps(cost, head)),
            key=lambda step: -step.rate,
        )
        closed = set[int]()
        for step in steps:
            if step.head in closed:
                continue
            if step.tokens > spare:
                closed.add(step.head)
                continue
            spare -= step.tokens
            place[step.head] = step.end
        chosen = torch.tensor(place, device=self.budget.device)[:, None]
        return self.budget.gather(1, chosen)[:, 0]

    def _steps(self, cost: Float[Tensor, "b t"], head: int) -> list["_Step"]:
        """Return the edges of the lower convex hull of a head's curve."""
        x, y = self.budget[head].tolist(), cost[head].tolist()
        steps, start = list[_Step](), 0
        while start < len(x) - 1:
            ends = range(start + 1, len(x))
            rate = {end: (y[start] - y[end]) / (x[end] - x[start]) for end in ends}
            end = max(ends, key=lambda e: (rate[e], e))
            if rate[end] <= 0:
                break
            steps.append(_Step(head, end, x[end] - x[start], rate[end]))
            start = end
        return steps


@final
@dataclasses.dataclass(frozen=True)
class _Step:
    """One head moves up to the budget number `end`."""

    head: int
    end: int
    tokens: float
    rate: float


def held_out_errors(
    method: Compressor, prompt: LayerPrompt, budget: Float[Tensor, " b"], held: int
) -> Float[Tensor, "b g m"]:
    """Return the relative errors of `held_out`.

    Raises:
        ValueError: The prompt's queries are not more than `held`.
    """
    return held_out(method, prompt, budget, held).relative


def error_curves(
    method: Compressor,
    prompt: LayerPrompt,
    fractions: Sequence[float] = FRACTIONS,
    held: int = 128,
    measure: Callable[[HeldOut], Float[Tensor, " b"]] = HeldOut.damage,
) -> ErrorCurves:
    """Measure a layer's error curves at fractions of its tokens, and at all of them.

    Args:
        method: The method of compression.
        prompt: One text.
        fractions: Budgets over the number of tokens, increasing, below 1.
        held: How many of the last queries ask.
        measure: `HeldOut.damage` or `HeldOut.median`.
    """
    count = prompt.valid.sum(1).float()
    cuts = [fraction * (count - held) for fraction in fractions]
    errors = [measure(one) for one in held_out_each(method, prompt, cuts, held)]
    budgets = [fraction * count for fraction in fractions]
    return ErrorCurves(
        torch.stack([*budgets, count], 1),
        torch.stack([*errors, torch.zeros_like(count)], 1),
    )
