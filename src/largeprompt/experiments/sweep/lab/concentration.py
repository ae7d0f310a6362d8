"""Errors of a drawn head at one prompt length, beside the exact law and the bounds."""

import dataclasses
import math
from pathlib import Path
from typing import ClassVar, final

from typing_extensions import override

from largeprompt.experiments.sweep.experiment import Drawing, Experiment, Row
from largeprompt.experiments.sweep.key import Key
from largeprompt.experiments.sweep.options import (
    check_above_zero,
    check_known,
    check_least,
)

LAWS = (
    "gaussian",
    "decaying",
    "condition-8",
    "rademacher",
    "cube",
    "sphere",
    "laplace",
)


@final
@dataclasses.dataclass(frozen=True)
class ConcentrationCell(Experiment):
    r"""Mean square errors of output and gradients over drawn prompts.

    Head and queries are those of the seed, the norms and the dimension: the same at
    every prompt length and for every token law; prompts are the cell's own.

    Attributes:
        law: The token law.
        n: The prompt length.
        seed: Of head, queries and prompts.
        dim: $d$, of tokens, queries and values.
        bilinear_norm: The operator norm of $U$.
        value_norm: The operator norm of $V$.
        queries: How many queries the head is asked.
        prompts: How many prompts a query is asked of, at least 2.
        bounds: Whether proven bounds are computed; they take most of the time.
    """

    drawing: ClassVar[Drawing] = Drawing(
        "n", "mean_square", "quantity", panel="law", reference="exact"
    )

    law: str
    n: int
    seed: int = 0
    dim: int = 4
    bilinear_norm: float = 0.22
    value_norm: float = 0.75
    queries: int = 16
    prompts: int = 32
    bounds: bool = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        check_known("law", self.law, LAWS)
        check_least(self, n=1, seed=0, dim=1, queries=1, prompts=2)
        check_above_zero(self, "bilinear_norm", "value_norm")

    @override
    def rows(self, key: Key, keep: Path) -> list[Row]:
        import torch

        from largeprompt.experiments.heads import RandomHeads
        from largeprompt.experiments.reference_lines import (
            exact_errors,
            proven_errors,
        )
        from largeprompt.experiments.simulation import Quantity, squared_errors
        from largeprompt.experiments.token_laws import TokenLaw, token_law

        norms = {"bilinear_norm": self.bilinear_norm, "value_norm": self.value_norm}
        shared = Key.of({"head": norms, "dim": self.dim, "seed": self.seed})
        head = RandomHeads(dim=self.dim, **norms).draw(shared.generator(0))
        queries = torch.randn(
            self.queries, self.dim, generator=shared.generator(1), dtype=torch.float64
        )
        measure = token_law(TokenLaw(self.law), self.dim)
        drawn = squared_errors(
            head, measure, queries, self.n, self.prompts, key.generator(0)
        )
        rows = []
        for quantity in Quantity:
            values = drawn.of(quantity)
            exact = exact_errors(head, measure, queries, quantity, [self.n])
            bound = math.inf
            if self.bounds:
                bound = proven_errors(head, measure, queries, quantity, [self.n])[0]
            error = values.var(dim=1).mean() / values.numel()  # strata are queries
            rows.append(
                {
                    "quantity": quantity.value,
                    "mean_square": float(values.mean()),
                    "standard_error": float(error.sqrt()),
                    "exact": exact[0] if exact else None,
                    "bound": bound if bound < math.inf else None,
                }
            )
        return rows
