"""An audit made up from a formula: sizes of a real model, no model needed."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.stats

from largeprompt.audit import AuditResult
from largeprompt.audit.columns import COLUMNS, SCHEMA
from largeprompt.audit.profiles import PROFILE_SCHEMA
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
    extra = np.random.default_rng([layer, head, n])
    without = _without_sinks(max(1, seen - 4), 0.7 * variance, in_sample, extra)
    return {
        **without,
        "sinks": 4,
        "left_out_share": sinks,
        "key_mean_share": float(extra.beta(2, 2)),
        "key_rank": float(extra.uniform(3, 40)),
        "key_kurtosis": float(extra.exponential(0.5)),
        "key_mean_share_before_rotary": float(extra.beta(4, 2)),
        "key_rank_before_rotary": float(extra.uniform(3, 40)),
        "key_kurtosis_before_rotary": float(extra.exponential(0.4)),
        "text": "prose",
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


def _without_sinks(
    seen: int, variance: float, error: float, draw: np.random.Generator
) -> dict[str, Any]:
    inverse_ess = min(1.0, math.exp(variance) / seen) ** 0.6
    row = {
        "logit_variance": variance,
        "logit_kurtosis": float(draw.standard_t(3)),
        "ess": 0.8 / inverse_ess,
        "ess_law": 1 / inverse_ess,
        "max_weight": min(1.0, inverse_ess),
        "output_rms": float(draw.lognormal(1.0, 0.4)),
        "linear_error_in_sample": error * 0.7,
        "linear_error_kept": error * 0.15,
        "limit_error_held_out": error,
        "limit_error_law": error * 0.9,
        "proxy_ratio": 1 + float(draw.exponential(0.5)),
        "tail_exponent": float(draw.uniform(0.8, 2)),
        "phase": phase(seen, variance).value,
        "tokens_needed": 25.0 * math.exp(variance) // 1,
        "verdict": f"Without its sinks off by {error:.0%}.",
        "failed_assumption": "" if error <= 0.1 else "prompt too short",
    }
    return {f"{name}_without_sinks": value for name, value in row.items()}


def _manifest(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    layers = 1 + max(row["layer"] for row in rows)
    heads = 1 + max(row["head"] for row in rows)
    lengths = sorted({row["n"] for row in rows})
    text = {"name": "prose", "sha256": "1" * 64, "tokens": lengths[-1]}
    return {
        "format": "largeprompt.audit/2",
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
        "text": text,
        "texts": [text],
        "arguments": {
            "lengths": lengths,
            "queries": 32,
            "eps": 0.1,
            "layers": None,
            "heads": None,
            "seed": 0,
        },
        "versions": {"largeprompt": "0.1.0", "python": "3.11.2", "torch": "2.13.0"},
        "seed": 0,
        "machine": "x86_64, 2 cores",
        "created": "2026-12-01T04:06:26+00:00",
        "seconds": 41.7,
        "peak_rss_bytes": 2_147_483_648,
        "definitions": {column.name: column.definition for column in COLUMNS},
    }


def synthetic_profiles(audit: AuditResult) -> AuditResult:
    """The audit with curves for every head at its longest length."""
    draw = np.random.default_rng(9)
    longest = max(audit.manifest["arguments"]["lengths"])
    rows = [
        {
            **{name: row[name] for name in ("text", "layer", "head", "n")},
            "profile": profile,
            **curve,
        }
        for row in audit.heads.filter(pc.field("n") == longest).to_pylist()
        for profile, curve in _curves(row, draw).items()
    ]
    table = pa.Table.from_pylist(rows, schema=PROFILE_SCHEMA)
    return AuditResult(audit.heads, audit.manifest, table)


def _curves(row: dict[str, Any], draw: np.random.Generator) -> dict[str, Any]:
    """A formula with the shape of a real head, for each kind of curve."""
    n, variance = row["n"], row["logit_variance"]
    normal = scipy.stats.norm.ppf(np.linspace(0.0005, 0.9995, 33))
    heavy = 0.02 * abs(row["logit_kurtosis"])
    sizes = np.geomspace(3, 0.01, 24) * draw.lognormal(0, 0.2)
    bands = np.array([1, 2, 3, 4, *2 ** np.arange(2, math.log2(n)) + 1])
    width = np.diff([*bands, n + 1])
    beyond = np.arange(0.5, 8.5, 0.5)
    tilts = np.linspace(0.125, 2, 16)
    lags = 2.0 ** np.arange(0, math.log2(n) - 2)
    weights = row["sink_share"] * 0.5 ** np.arange(len(bands)) + width / n * 0.5
    shorter = np.array([256.0, 512, 1024, 2048])
    return {
        "qq": _curve(normal, normal + heavy * normal**3, normal),
        "tail": _curve(
            beyond,
            scipy.stats.norm.sf(beyond / (1 + heavy)),
            scipy.stats.norm.sf(beyond),
        ),
        "log_mgf": _curve(
            tilts,
            tilts**2 * variance / 2 + heavy * tilts**3,
            tilts**2 * variance / 2,
        ),
        "keys": _curve(1 + np.arange(len(sizes)), 3 * sizes, 2 * sizes),
        "sinks": _tokens([0, 1, 2, 3], row["sink_share"] * 0.5 ** np.arange(1, 5)),
        **{
            f"{side}_mode_{mode}": _tokens(
                draw.choice(n, 5, replace=False), draw.normal(4, 1, 5)
            )
            for mode in (1, 2, 3)
            for side in ("key", "value")
        },
        "spectrum": _curve(1 + np.arange(len(sizes)), sizes, None),
        "sink": _curve(bands, weights / weights.sum(), width / n),
        "recent": _curve(bands, weights / weights.sum(), width / n),
        "autocorrelation": _curve(lags, 0.6 * np.exp(-lags / 40), 0 * lags),
        "drift": _curve(shorter, 3 / shorter**0.4, 2 / shorter**0.5),
    }


WORDS = [" the", " of", "\n\n", " softmax", "()", "</script>", " Größe", "0", " law"]


def _tokens(positions: Any, numbers: Any) -> dict[str, Any]:
    labels = [WORDS[int(at) % len(WORDS)] for at in positions]
    return {**_curve(positions, numbers, None), "labels": labels}


def _curve(x: Any, measured: Any, law: Any) -> dict[str, Any]:
    return {
        "x": [float(value) for value in x],
        "measured": [float(value) for value in measured],
        "law": None if law is None else [float(value) for value in law],
    }
