"""The paper's 19 x 2 training curves: time, error, and the cost of the same by SGD."""

import time

from benchmarks.record import Row
from largeprompt.experiments.paper_training import (
    PROCESSES,
    RATE,
    TIME,
    curve_settings,
    sgd_steps,
)
from largeprompt.experiments.sgd_cost import sgd_seconds
from largeprompt.icl.curves import SOFTMAX, training_curves, worker_pool
from largeprompt.icl.parameters import Separate
from largeprompt.icl.presets import preset

TESTS = ["tests/icl/test_icl_curves.py", "tests/icl/test_icl_flow.py"]
DISTRIBUTIONS = ["largeprompt", "torch", "numpy", "scipy"]


def measure() -> list[Row]:
    """Follow all curves in both covariances, and time SGD at three lengths."""
    return [
        row for name in ("paper-as-published", "paper-intended") for row in _of(name)
    ]


def _of(name: str) -> list[Row]:
    setting = preset(name)
    shared = curve_settings(setting, sgd_steps(fast=False) * RATE, fast=False)
    assert isinstance(shared.start, Separate), "the official parametrisation"
    steps = round(TIME / RATE)
    with worker_pool(PROCESSES) as pool:
        start = time.perf_counter()
        curves = training_curves(shared, setting.lengths, pool=pool)
        seconds = time.perf_counter() - start
        timed = pool.submit(
            sgd_seconds, setting.task, shared.start, setting.lengths, steps
        )
        sgd = timed.result()
    errors = [float(c.relative_error.max()) for c in curves if c.attention == SOFTMAX]
    details = {"processes": PROCESSES, "curves": len(curves), "seed": shared.seed}
    quantities = [
        ("time of all curves", "s", seconds, details),
        (
            "largest relative error of a risk",
            "",
            max(errors),
            {
                "fresh_points": shared.fresh_points,
                "confidence": shared.confidence,
            },
        ),
        (
            f"{steps:,} plain SGD steps each, one process, extrapolated",
            "h",
            sgd / 3600,
            {"timed": "steps at three lengths, the rest interpolated"},
        ),
        ("time of SGD over the curves", "x", sgd / seconds, {}),
    ]
    return [
        Row("curves", f"{name}: {what}", unit, value, value, value, more)
        for what, unit, value, more in quantities
    ]
