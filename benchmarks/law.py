"""The exact law: time per value, its error, and adaptive quadrature beside it."""

import functools
import json
import statistics
import time

import numpy as np
from scipy.integrate import quad

from benchmarks.record import ROOT, Row
from largeprompt.laws import gaussian_law, law_table

TESTS = ["tests/laws/test_exact.py", "tests/laws/test_table.py"]
DISTRIBUTIONS = ["largeprompt", "numpy", "scipy"]
LENGTHS = [2, 10, 100, 4096, 1e6, 1e9, 1e12, 1e15]
VARIANCES = [1e-12, 0.01, 0.25, 1, 4, 9, 25, 100, 400]
REPEATS = 5


def seconds(function) -> float:
    """Time one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def adaptive_inverse_ess(n: float, logit_variance: float) -> float:
    """The baseline: nested adaptive quadrature by scipy, straight from the formula."""
    scale = np.sqrt(logit_variance)

    def expect(function, tau):
        def integrand(g):
            y = np.exp(tau + scale * g)
            return function(y) * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)

        return quad(integrand, -10, 10 + 3 * scale, epsabs=0, epsrel=1e-10, limit=200)[
            0
        ]

    def outer(tau):
        complement = expect(lambda y: -np.expm1(-y), tau)
        second = expect(lambda y: y**2 * np.exp(-y), tau)
        return second * np.exp((n - 1) * np.log1p(-min(complement, 1 - 1e-15)))

    low, high = -np.log(n) - 8 * scale - 12, 6 * scale + 4
    return n * quad(outer, low, high, epsabs=0, epsrel=1e-8, limit=200)[0]


def measure() -> list[Row]:
    """Time every point of the grid; measure errors; time the baseline."""
    cells = [(n, v) for n in LENGTHS for v in VARIANCES]
    gaussian_law(10, 1.0)
    milliseconds = [
        statistics.median(
            1e3 * seconds(functools.partial(gaussian_law, *cell))
            for _ in range(REPEATS)
        )
        for cell in cells
    ]
    rows = [
        Row(
            "law",
            "time per value",
            "ms",
            statistics.median(milliseconds),
            min(milliseconds),
            max(milliseconds),
            {"points": len(cells), "repeats": REPEATS},
        )
    ]
    table = json.loads((ROOT / "tests/laws/mpmath_law.json").read_text())
    for field, name in (("inverse_ess", "phi"), ("parallel_mse", "psi")):
        errors = [
            abs(
                float(getattr(gaussian_law(row["n"], row["logit_variance"]), field))
                / float(row[name])
                - 1
            )
            for row in table
        ]
        rows.append(
            Row(
                "law",
                f"relative error of {name}",
                "",
                statistics.median(errors),
                min(errors),
                max(errors),
                {"points": len(errors), "reference": "mpmath, 26 digits"},
            )
        )
    rows.append(_against_baseline())
    rows.append(_table_error())
    return rows


def _against_baseline() -> Row:
    """Interleave the law with adaptive quadrature at one point."""
    point = (4096, 1.0)
    ours, theirs = [], []
    for _ in range(3):
        ours.append(seconds(lambda: gaussian_law(*point)))
        theirs.append(seconds(lambda: adaptive_inverse_ess(*point)))
    ratios = [t / o for t, o in zip(theirs, ours, strict=True)]
    exact = float(gaussian_law(*point).inverse_ess)
    return Row(
        "law",
        "speed over nested scipy.integrate.quad",
        "x",
        statistics.median(ratios),
        min(ratios),
        max(ratios),
        {
            "n": point[0],
            "logit_variance": point[1],
            "relative difference of phi": abs(adaptive_inverse_ess(*point) / exact - 1),
        },
    )


def _table_error() -> Row:
    """The error of tables at random logit variances."""
    generator = np.random.default_rng(0)
    errors = []
    for n in LENGTHS:
        variances = generator.uniform(0, 64, 100)
        ours, exact = law_table(n, 64.0)(variances), gaussian_law(n, variances)
        errors.extend(
            np.abs(getattr(ours, field) / getattr(exact, field) - 1).max()
            for field in ("inverse_ess", "parallel_mse")
        )
    return Row(
        "law",
        "relative error of tables",
        "",
        statistics.median(errors),
        min(errors),
        max(errors),
        {"seed": 0, "max_logit_variance": 64, "lengths": LENGTHS},
    )
