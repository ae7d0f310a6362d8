"""Exact risks of in-context learning beside published values and drawn prompts."""

import functools
import time

import torch

from benchmarks.record import Row
from largeprompt.icl import (
    RiskEstimate,
    label_blind_risk,
    multihead_risk,
    one_step_risk,
    preset,
    reading_head,
    ridge_risk,
    ridgeless_risk,
    simulated_risk,
    softmax_prediction,
)

TESTS = ["tests/icl/test_icl_population.py", "tests/icl/test_icl_baselines.py"]
DISTRIBUTIONS = ["largeprompt", "torch", "numpy", "scipy"]
LENGTHS = [10, 20, 40, 100]
SEED = 20261201
DRAWS = 200_000
HE = preset("he-et-al").task
SLOPE, HEIGHT = 0.13, 3.45  # of the two opposite heads
PUBLISHED = {  # He, Pan, Chen and Yang (2025), their Monte Carlo, up to 1.5% off
    "one head": (0.8754, 0.5859, 0.4048, 0.2844),
    "two opposite heads": (0.60392, 0.36748, 0.24304, 0.16376),
    "one gradient step": (0.64343, 0.37089, 0.24075, 0.16216),
    "ridge": (0.19382, 0.13456, 0.11464, 0.10409),
}


def one_head() -> tuple[torch.Tensor, torch.Tensor]:
    r"""Logits $x \cdot x_q / \sqrt5$, values $1.6278\, y$."""
    bilinear, value = reading_head(torch.eye(5, dtype=torch.float64) / 5**0.5)
    return bilinear, 1.6278 * value


def opposite_heads() -> tuple[torch.Tensor, torch.Tensor]:
    r"""Logits $\pm 0.13\, x \cdot x_q$, values $\pm 3.45\, y$."""
    bilinear, value = reading_head(SLOPE * torch.eye(5, dtype=torch.float64))
    return torch.stack([bilinear, -bilinear]), HEIGHT * torch.stack([value, -value])


def risk(kind: str, n: int) -> RiskEstimate:
    """The risk of one predictor at one length."""
    generator = torch.Generator().manual_seed(SEED)
    match kind:
        case "one head":
            return label_blind_risk(HE, n, *one_head())
        case "two opposite heads":
            exact = multihead_risk(HE, n, generator, count=1024)
            return exact.estimate(*opposite_heads())
        case "one gradient step":
            return one_step_risk(HE, n, 2 * SLOPE * HEIGHT)
        case "ridge":
            return ridge_risk(HE, n, HE.dim * HE.noise_variance, DRAWS, generator)
    raise ValueError(f"kind must be one of {list(PUBLISHED)}; got {kind!r}")


def measure() -> list[Row]:
    """Return every row."""
    rows = []
    for kind, published in PUBLISHED.items():
        for n, theirs in zip(LENGTHS, published, strict=True):
            start = time.perf_counter()
            ours = risk(kind, n)
            details = {
                "published": theirs,
                "over published": ours.value / theirs,
                "status": ours.status.value,
                "confidence": ours.confidence,
                "seconds": time.perf_counter() - start,
                "seed": SEED,
            }
            name = f"risk of {kind}, n {n} (published {theirs})"
            rows.append(
                Row("population", name, "", ours.value, *ours.interval, details)
            )
    rows += [
        _drawn(kind, n) for kind in ("one head", "two opposite heads") for n in LENGTHS
    ]
    lu = ridgeless_risk(0.5, 0.5, 0.1, 0.1)
    rows.append(Row("population", "ridgeless limit of Lu et al.", "", lu, lu, lu))
    return rows


def _drawn(kind: str, n: int) -> Row:
    """Softmax heads by drawn prompts, for the exact values above."""
    generator = torch.Generator().manual_seed(SEED)
    bilinear, value = one_head() if kind == "one head" else opposite_heads()
    predict = functools.partial(softmax_prediction, bilinear=bilinear, value=value)
    drawn = simulated_risk(HE, predict, n, DRAWS, generator)
    return Row(
        "population",
        f"risk of {kind}, n {n}, by drawn prompts",
        "",
        drawn.value,
        *drawn.interval,
        {"draws": DRAWS, "seed": SEED, "confidence": drawn.confidence},
    )
