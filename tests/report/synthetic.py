"""An audit made up from a formula: sizes of a real model, no model needed."""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from largeprompt.audit import AuditResult
from largeprompt.audit.columns import COLUMNS, SCHEMA
from largeprompt.laws import phase

LENGTHS = (256, 512, 1024, 2048, 4096, 8192)


def synthetic_audit(
    layers: int = 30,
    heads: int = 9,
    lengths: tuple[int, ...] = LENGTHS,
    name: str = "SmolLM2-135M-Instruct",
    window: int | None = None,
) -> AuditResult:
    draw = np.random.default_rng(5)
    rows = []
    for layer in range(layers):
        for head in range(heads):
            depth = 1.6 * math.sin(3.1 * layer / layers) + draw.normal(0.6, 0.9)
            rows += [
                _row(
                    layer, head, n, math.exp(depth), draw, window if layer % 2 else None
                )
                for n in lengths
            ]
    return AuditResult(pa.Table.from_pylist(rows, schema=SCHEMA), _manifest(name, rows))


def _row(
    layer: int,
    head: int,
    n: int,
    level: float,
    draw: np.random.Generator,
    window: int | None,
) -> dict[str, Any]:
    seen = min(n, window or n)
    variance = level * (1 + 0.03 * math.log(n)) * draw.lognormal(0.0, 0.08)
    inverse_ess = min(1.0, math.exp(variance) / seen) ** 0.6
    in_sample = math.sqrt(inverse_ess) * 2.1 * draw.lognormal(0.0, 0.2)
    held_out = in_sample * draw.lognormal(0.7, 0.2)
    sinks = float(draw.beta(0.6, 1.2))
    needed = 25.0 * math.exp(variance) // 1
    regime = phase(seen, variance).value
    return {
        "layer": layer,
        "head": head,
        "kv_head": head // 3,
        "n": n,
        "effective_n": seen,
        "window": window,
        "queries": 32,
        "logit_variance": variance,
        "logit_variance_low": variance * 0.6,
        "logit_variance_high": variance * 1.9,
        "logit_kurtosis": float(draw.standard_t(2)),
        "ess": 0.8 / inverse_ess * draw.lognormal(0.0, 0.15),
        "ess_law": 1 / inverse_ess,
        "entropy": math.log(1 / inverse_ess + 1),
        "max_weight": min(1.0, inverse_ess * 1.5),
        "max_logit": 4 * math.sqrt(variance),
        "sink_share": sinks,
        "output_rms": float(draw.lognormal(1.0, 0.4)),
        "linear_error_in_sample": in_sample,
        "linear_error_kept": in_sample * 0.2 * draw.lognormal(0.0, 0.4),
        "limit_error_held_out": held_out,
        "limit_error_law": held_out * draw.lognormal(-0.1, 0.1),
        "phase": regime,
        "tokens_needed": needed if needed < 1e15 else None,
        "verdict": f"{regime.capitalize()} at {n:,} tokens: the weights are worth "
        f"{0.8 / inverse_ess:.0f} of them, and the limit misses by {held_out:.0%}.",
        "failed_assumption": ""
        if regime == "linear"
        else "prompt too short"
        if sinks < 0.5
        else "sinks",
        "parity_error": 2.3e-7,
    }


def _manifest(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    layers = 1 + max(row["layer"] for row in rows)
    heads = 1 + max(row["head"] for row in rows)
    lengths = sorted({row["n"] for row in rows})
    return {
        "format": "largeprompt.audit/1",
        "model": {
            "name": name,
            "source": "made up",
            "sha256": "0" * 64,
            "architecture": "LlamaForCausalLM",
            "layers": layers,
            "heads": heads,
            "kv_heads": heads // 3,
            "head_dim": 64,
            "dtype": "float32",
        },
        "text": {"name": "prose", "sha256": "1" * 64, "tokens": lengths[-1]},
        "arguments": {"lengths": lengths, "queries": 32, "eps": 0.1, "seed": 0},
        "versions": {"largeprompt": "0.1.0", "python": "3.11.2", "torch": "2.13.0"},
        "seed": 0,
        "machine": "x86_64, 2 cores",
        "created": "2026-12-01T04:06:26+00:00",
        "seconds": 41.7,
        "peak_rss_bytes": 2_147_483_648,
        "definitions": {column.name: column.definition for column in COLUMNS},
    }
