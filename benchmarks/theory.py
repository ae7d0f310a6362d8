"""Numbers of the finite-prompt laws: Monte Carlo, bounds, local slopes, curves."""

import math
import statistics
import time

import numpy as np
import torch

from benchmarks.record import Row
from largeprompt.attention import Head
from largeprompt.attention.bounds import output_bound
from largeprompt.attention.output_moments import output_moments
from largeprompt.attention.simulation import Simulation
from largeprompt.laws import gaussian_law
from largeprompt.laws.curve import error_curve
from largeprompt.laws.rates import limit_constant, rate_exponents
from largeprompt.measures import Gaussian

TESTS = [
    "tests/laws/test_curve.py",
    "tests/laws/test_rates.py",
    "tests/laws/test_bounds.py",
    "tests/attention/test_output_moments.py",
]
DISTRIBUTIONS = ["largeprompt", "torch", "numpy"]
MONTE_CARLO = [(64, 1.0, 5, 40_000), (512, 4.0, 16, 4_000), (4096, 9.0, 64, 1_500)]
CONFIDENCE = 0.99
LOCAL_SLOPES = [0.25, 0.5, 1.0, 2.0, 4.0]
CASE = "theory"


def identity_head(dim: int) -> Head:
    """Keys, queries and values are the tokens themselves."""
    eye = torch.eye(dim, dtype=torch.float64)
    return Head(key=eye, query=eye, value=eye, scale=1.0)


def measure() -> list[Row]:
    """Return every row."""
    return [
        *(_monte_carlo(*cell) for cell in MONTE_CARLO),
        *_bound_over_exact(),
        *(_local_slope(top) for top in LOCAL_SLOPES),
        *(_limit(top) for top in (0.1, 0.25)),
        _curve_time(),
    ]


def _monte_carlo(n: int, logit_variance: float, dim: int, prompts: int) -> Row:
    """Exact over simulated mean square error, with the interval of the simulation."""
    z = torch.zeros(dim, dtype=torch.float64)
    z[0] = math.sqrt(logit_variance)
    tokens = Gaussian(torch.zeros_like(z), torch.eye(dim, dtype=torch.float64))
    head = identity_head(dim)
    exact = output_moments(head, tokens, z, n).mean_square_error
    generator = torch.Generator().manual_seed(20261204)
    simulation = Simulation(prompts, generator, confidence=CONFIDENCE)
    drawn = simulation.run(head, tokens, z, n)
    low, high = drawn.interval
    return Row(
        CASE,
        f"simulated over exact mean square, n {n}, s^2 {logit_variance:g}, d {dim}",
        "",
        float(drawn.error.trace()) / exact,
        low / exact,
        high / exact,
        {
            "exact": exact,
            "exact within": low <= exact <= high,
            "confidence": CONFIDENCE,
            "prompts": prompts,
            "seed": 20261204,
        },
    )


def _bound_over_exact() -> list[Row]:
    """The example of five correlated coordinates, n = 4096, s^2 = 1."""
    place = torch.arange(5, dtype=torch.float64)
    cov = 0.5 ** (place[:, None] - place).abs()
    tokens, z = Gaussian(torch.zeros_like(place), cov), torch.eye(5, dtype=cov.dtype)[0]
    head = identity_head(5)
    bound = output_bound(head, tokens, z)
    exact = output_moments(head, tokens, z, 4096).mean_square_error
    squares = _drawn_squares(head, tokens, z, 4096, 5_000)
    quantile = float(squares.quantile(0.95).sqrt())
    mse, radius = bound.mse(4096) / exact, bound.radius(4096, 0.05) / quantile
    details = {"n": 4096, "logit_variance": 1, "d": 5}
    return [
        Row(
            CASE,
            "bound over exact mean square, n 4096, s^2 1",
            "x",
            mse,
            mse,
            mse,
            {**details, "exact": exact, "bound": bound.mse(4096)},
        ),
        Row(
            CASE,
            "bound over 95% quantile of the error, n 4096, s^2 1",
            "x",
            radius,
            radius,
            radius,
            {
                **details,
                "quantile of 5000 prompts": quantile,
                "bound": bound.radius(4096, 0.05),
                "seed": 20261205,
            },
        ),
    ]


def _drawn_squares(
    head: Head, tokens: Gaussian, z: torch.Tensor, n: int, prompts: int
) -> torch.Tensor:
    """Squared errors of drawn prompts."""
    generator = torch.Generator().manual_seed(20261205)
    limit, blocks = head.output(tokens, z), []
    for _ in range(prompts // 50):
        drawn = tokens.sample(50 * n, generator).reshape(50, n, -1)
        weights = torch.softmax(drawn @ head.tilt(z), -1).unsqueeze(-1)
        outputs = (weights * drawn).sum(1) @ head.value.mT
        blocks.append((outputs - limit).square().sum(-1))
    return torch.cat(blocks)


def _local_slope(top: float) -> Row:
    """The exact exponent of E_z psi in one dimension over the decade below 10^12."""
    n = np.array([1e11, 1e12])
    exponent = float(error_curve(n, [top], [top], 1.0).exponents[0])
    return Row(
        CASE,
        f"exponent from n 10^11 to 10^12, lambda {top:g}",
        "",
        exponent,
        exponent,
        exponent,
        {"asymptotic": rate_exponents(top).mean_square, "status": "exact"},
    )


def _limit(top: float) -> Row:
    """The limit of n times the error, against the exact error at n = 10^12."""
    limit = limit_constant([top], [top], 1.0)
    curve = error_curve([1e12], [top], [top], 1.0)
    return Row(
        CASE,
        f"limit of n times the error, lambda {top:g}",
        "",
        limit,
        limit,
        limit,
        {
            "closed form": (1 - top) / (1 - 2 * top) ** 1.5,
            "exact at n 10^12": 1e12 * float(curve.mean_square_error[0]),
        },
    )


def _curve_time() -> Row:
    """Fifty lengths from 10 to 10^12 of one head."""
    lengths = np.geomspace(10, 1e12, 50)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        law = gaussian_law(lengths, 4.0)
        law.mean_square_error(response=4.0, variance=64.0)
        error_curve(lengths, [0.3, 0.2, 0.1], [0.3, 0.2, 0.1], 3.0)
        times.append(time.perf_counter() - start)
    return Row(
        CASE,
        "curves of 50 lengths, one query and averaged over queries",
        "s",
        statistics.median(times),
        min(times),
        max(times),
        {"lengths": "10 to 10^12", "repeats": 3},
    )
