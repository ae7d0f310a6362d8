"""The audit of a real model: time and memory, beside a plain forward pass."""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

from benchmarks.record import Row
from largeprompt.audit.drift_surface import drift_surface
from largeprompt.audit.surface import law_surface
from largeprompt.hf import audit_model, estimate, load_model, load_text

TESTS = ["tests/hf", "tests/audit"]
DISTRIBUTIONS = ["largeprompt", "numpy", "torch", "transformers"]
SHORT = [256, 512, 1024, 2048]
LONG = [256, 512, 1024, 2048, 4096, 8192]
REPEATS = 3
GIBI = 2**30


def measure() -> list[Row]:
    """Audit all heads of the embedded models, in this process and in fresh ones."""
    rows = [_against_a_forward_pass(n) for n in (SHORT[-1], LONG[-1])]
    rows.append(_estimate_over_truth())
    for lengths in (SHORT, LONG):
        rows.extend(_whole_command(lengths))
    return rows


def _against_a_forward_pass(n: int) -> Row:
    """Interleave audits with forward passes of the same tokens.

    Weights are hashed and the law tabulated once a process, before the clock starts.
    """
    model, tokenizer, description = load_model("smollm2")
    text, lengths = load_text("prose"), [length for length in LONG if length <= n]
    tokens = tokenizer(text.content, return_tensors="pt").input_ids[:, :n]
    law_surface()
    drift_surface()
    audits, passes = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        with torch.inference_mode():
            model.base_model(input_ids=tokens, use_cache=False)
        passes.append(time.perf_counter() - start)
        start = time.perf_counter()
        audit_model(model, tokenizer, text, lengths, description=description)
        audits.append(time.perf_counter() - start)
    ratios = [a / p for a, p in zip(audits, passes, strict=True)]
    return Row(
        "audit",
        f"time of an audit over a forward pass, {n:,} tokens",
        "x",
        statistics.median(ratios),
        min(ratios),
        max(ratios),
        {"audit_seconds": audits, "forward_seconds": passes, "lengths": lengths},
    )


def _estimate_over_truth() -> Row:
    """Estimate audits of several lengths, then run them."""
    model, tokenizer, description = load_model("smollm2")
    text, longest = load_text("prose"), (1024, 2048, 4096)
    estimates, truths = [], []
    for n in longest:
        lengths = [length for length in LONG if length <= n]
        estimates.append(estimate(model, lengths).seconds)
        start = time.perf_counter()
        audit_model(model, tokenizer, text, lengths, description=description)
        truths.append(time.perf_counter() - start)
    ratios = [e / t for e, t in zip(estimates, truths, strict=True)]
    return Row(
        "audit",
        "estimated time over the truth, up to 1,024, 2,048 and 4,096 tokens",
        "x",
        statistics.median(ratios),
        min(ratios),
        max(ratios),
        {"estimated_seconds": estimates, "seconds": truths, "longest": list(longest)},
    )


def _whole_command(lengths: list[int]) -> list[Row]:
    """Run the command in a fresh process and read its manifest."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "audit"
        command = [sys.executable, "-m", "largeprompt", "audit", "smollm2"]
        command += ["--lengths", ",".join(map(str, lengths)), "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        manifest = json.loads((out / "manifest.json").read_text())
    name = f"270 heads, {lengths[0]:,} to {lengths[-1]:,} tokens"
    return [
        _once(f"time after loading, {name}", "s", manifest["seconds"], lengths),
        _once(
            f"peak resident memory, {name}",
            "GiB",
            manifest["peak_rss_bytes"] / GIBI,
            lengths,
        ),
    ]


def _once(quantity: str, unit: str, value: float, lengths: list[int]) -> Row:
    """A row of a single run."""
    details = {"lengths": lengths, "runs": 1}
    return Row("audit", quantity, unit, value, value, value, details)
