"""The published concentration experiment: slopes, agreement with the law, time."""

import statistics
import time
from collections.abc import Sequence

from benchmarks.record import Row
from largeprompt.experiments import (
    PUBLISHED,
    ConcentrationResult,
    measure_cells,
)
from largeprompt.experiments.cells import Cell
from largeprompt.experiments.simulation import Quantity

TESTS = ["tests/experiments"]
DISTRIBUTIONS = ["largeprompt", "torch", "numpy", "scipy"]


def measure() -> list[Row]:
    """Run the published settings once and read their slopes."""
    started, before = time.perf_counter(), time.process_time()
    cells = [cell for group in measure_cells(PUBLISHED) for cell in group]
    result = ConcentrationResult.of(PUBLISHED, cells, started)
    seconds = time.process_time() - before
    return [
        *(_slopes(result, quantity) for quantity in Quantity),
        _deviations(cells),
        Row(
            "concentration",
            "processor time of the published settings",
            "s",
            seconds,
            seconds,
            seconds,
            {"wall": time.perf_counter() - started, "repeats": 1},
        ),
    ]


def _slopes(result: ConcentrationResult, quantity: Quantity) -> Row:
    """The slopes of one quantity over the three covariances; published are between."""
    slopes = [slope for slope in result.slopes if slope.quantity == quantity]
    values = [slope.slope for slope in slopes]
    return Row(
        "concentration",
        f"slope of the {quantity} error in n",
        "",
        statistics.median(values),
        min(values),
        max(values),
        {
            "published": [-1.109, -0.832],
            "intervals": {slope.law: [slope.low, slope.high] for slope in slopes},
            "confidence": PUBLISHED.confidence,
            "of single seeds": [
                min(slope.least for slope in slopes),
                max(slope.most for slope in slopes),
            ],
            "exact": {slope.law: slope.exact for slope in slopes},
            **PUBLISHED.description(),
        },
    )


def _deviations(cells: Sequence[Cell]) -> Row:
    """Measured minus exact in standard errors: a spread of 1 if both are right."""
    deviations = [
        (measured - exact) / error
        for cell in cells
        if cell.exact is not None
        for measured, exact, error in zip(
            cell.mean_square, cell.exact, cell.standard_error, strict=True
        )
    ]
    return Row(
        "concentration",
        "measured minus exact mean square, in standard errors",
        "",
        statistics.median(deviations),
        min(deviations),
        max(deviations),
        {"cells": len(deviations), "spread": statistics.pstdev(deviations)},
    )
