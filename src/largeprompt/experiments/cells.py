"""The cells of a concentration experiment: errors drawn, and what theory says."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np
import torch

from largeprompt.experiments.concentration import Concentration
from largeprompt.experiments.reference_lines import (
    exact_errors,
    proven_errors,
    rate_exponent,
)
from largeprompt.experiments.simulation import Quantity, SquaredErrors, squared_errors
from largeprompt.experiments.token_laws import TokenLaw, token_law


@final
@dataclasses.dataclass(frozen=True)
class Cell:
    """What was measured for one law, one seed and one quantity, at every length.

    Attributes:
        law: The token law.
        seed: The number of the head, from 0.
        quantity: What the error is of.
        lengths: The prompt lengths.
        mean_square: The mean square error over queries and prompts.
        standard_error: Of that mean, given the queries.
        exact: Its expectation given the queries; None where no exact law is known.
        bound: What is proven of the expectation; infinite where nothing is.
        rate: $r$ of the long-run $n^{-r}$ for random queries, None where not known.
    """

    law: TokenLaw
    seed: int
    quantity: Quantity
    lengths: tuple[int, ...]
    mean_square: tuple[float, ...]
    standard_error: tuple[float, ...]
    exact: tuple[float, ...] | None
    bound: tuple[float, ...]
    rate: float | None


def measure_cells(experiment: Concentration) -> Iterator[list[Cell]]:
    """Yield the cells of one law and one seed at a time, `laws` times `seeds` in all.

    A cell depends on the experiment's `seed`, its law, its seed and the length only:
    other laws, seeds or lengths in the experiment do not change it.

    Raises:
        ValueError: The head reads tokens of a law that has no limit at a query.
    """
    for law in experiment.laws:
        for seed in range(experiment.seeds):
            yield _cells(experiment, law, seed)


def _cells(experiment: Concentration, law: TokenLaw, seed: int) -> list[Cell]:
    generator = _generator(experiment.seed, seed)
    head = experiment.heads.draw(generator)
    e, d = head.query.shape[1], head.key.shape[1]
    queries = torch.randn(
        experiment.queries, e, generator=generator, dtype=torch.float64
    )
    measure, lengths = token_law(law, d), experiment.lengths
    which = list(TokenLaw).index(law)
    drawn = [
        squared_errors(
            head,
            measure,
            queries,
            n,
            experiment.prompts,
            _generator(experiment.seed, seed, which, n),
        )
        for n in lengths
    ]
    cells = []
    for quantity in Quantity:
        means, errors = _averages(drawn, quantity)
        exact = exact_errors(head, measure, queries, quantity, lengths)
        bound = [math.inf] * len(lengths)
        if experiment.bounds:
            bound = proven_errors(head, measure, queries, quantity, lengths)
        cells.append(
            Cell(
                law=law,
                seed=seed,
                quantity=quantity,
                lengths=lengths,
                mean_square=means,
                standard_error=errors,
                exact=None if exact is None else tuple(exact),
                bound=tuple(bound),
                rate=rate_exponent(head, measure, quantity),
            )
        )
    return cells


def _averages(
    drawn: Sequence[SquaredErrors], quantity: Quantity
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the mean at each length, and its standard error given the queries."""
    means, errors = [], []
    for sample in drawn:
        values = sample.of(quantity)
        means.append(float(values.mean()))
        variance = values.var(dim=1).mean() / values.numel()  # strata are queries
        errors.append(float(variance.sqrt()))
    return tuple(means), tuple(errors)


def _generator(seed: int, *key: int) -> torch.Generator:
    """Return the generator of a key; those of different keys are independent."""
    sequence = np.random.SeedSequence(seed, spawn_key=key)
    state = sequence.generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))
