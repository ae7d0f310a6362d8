"""Gaussian laws through layers: errors of finite prompts, and a real model's tokens."""

import statistics

import torch

from benchmarks.record import Row
from largeprompt.attention import Head
from largeprompt.attention.layers import AttentionLayer
from largeprompt.attention.layers_simulation import depth_errors
from largeprompt.hf import load_model, load_text
from largeprompt.hf.token_law import token_laws
from largeprompt.measures import Gaussian

TESTS = ["tests/attention/test_layers_depth.py", "tests/hf/test_hf_token_law.py"]
DISTRIBUTIONS = ["largeprompt", "numpy", "scipy", "torch", "transformers"]
DIM, LAYERS, PROMPTS = 8, 6, 20
LENGTHS = (64, 256, 1024)
TOKENS = 2048


def measure() -> list[Row]:
    """Simulate stacks of random layers, then look at the embedded model."""
    rows = [
        row
        for causal in (False, True)
        for n in LENGTHS
        for row in _stack(n, causal=causal)
    ]
    loaded = load_model("smollm2")
    for text in ("prose", "code"):
        result = token_laws(
            loaded.model,
            loaded.tokenizer,
            load_text(text),
            TOKENS,
            description=loaded.description,
        )
        for what in ("hidden states", "keys"):
            rows += _distances(result.table.to_pylist(), what, text)
    return rows


def stack() -> tuple[list[AttentionLayer], Gaussian]:
    """Return layers of two heads with logits of variance about one, and a law."""
    generator = torch.Generator().manual_seed(0)
    draw = lambda: torch.randn(DIM, DIM, generator=generator, dtype=torch.float64)
    eye = torch.eye(DIM, dtype=torch.float64)
    layers = [
        AttentionLayer(
            tuple(Head(eye, draw(), 0.3 * draw() / DIM**0.5, 1 / DIM) for _ in range(2))
        )
        for _ in range(LAYERS)
    ]
    return layers, Gaussian(torch.zeros(DIM, dtype=torch.float64), eye)


def _stack(n: int, *, causal: bool) -> list[Row]:
    """The squared distance from the limit's path, times n; ranges over prompts."""
    layers, law = stack()
    errors = depth_errors(
        layers,
        law,
        n,
        prompts=PROMPTS,
        generator=torch.Generator().manual_seed(n),
        causal=causal,
        first=n // 2 if causal else 0,
    )
    mask = "causal, second half of the tokens" if causal else "bidirectional"
    rows = []
    for layer in (0, LAYERS - 1):
        squares = (n * errors.path[:, layer]).tolist()
        rows.append(
            Row(
                "depth",
                f"n x mean square error after layer {layer + 1}, n {n}, {mask}",
                "",
                statistics.median(squares),
                min(squares),
                max(squares),
                {
                    "prompts": PROMPTS,
                    "dim": DIM,
                    "path": errors.path.mean(0).tolist(),
                    "local": errors.local.mean(0).tolist(),
                },
            )
        )
    return rows


def _distances(table: list[dict], what: str, text: str) -> list[Row]:
    """Distances to the Gaussian over layers, beside those of Gaussian tokens."""
    rows = []
    for name in ("kolmogorov", "kurtosis"):
        for ending, whose in (("", "the model's"), ("_gaussian", "Gaussian tokens'")):
            values = [r[f"{name}{ending}"] for r in table if r["what"] == what]
            rows.append(
                Row(
                    "depth",
                    f"{name}, {what} over layers, {whose}, {text}",
                    "",
                    statistics.median(values),
                    min(values),
                    max(values),
                    {"tokens": TOKENS, "layers": values},
                )
            )
    return rows
