"""The other ways to ask for a compressed cache, on the embedded model.

A share of the bytes, an error that every head must meet, or an index that keeps the
tokens and reads few; and a sentence hidden in a long prompt.
"""

import dataclasses
import statistics
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from benchmarks.compression import CONTINUATION, PROMPT
from benchmarks.record import Row
from largeprompt.hf import LargePromptCache, cache_attention, load_model, load_text
from largeprompt.hf.evaluation_distance import distance
from largeprompt.hf.evaluation_methods import Cached, chosen_methods
from largeprompt.hf.evaluation_passkey import answered, hidden
from largeprompt.hf.evaluation_reading import Reading, fill, next_logits, read
from largeprompt.hf.texts import token_ids

TESTS = ["tests/hf/test_hf_cache.py", "tests/hf/test_hf_evaluation.py"]
DISTRIBUTIONS = ["largeprompt", "numba", "numpy", "torch", "transformers"]
TEXT = "speeches"
QUERIES = 256
SETTINGS: dict[str, dict[str, Any]] = {
    "budget=0.05": {"budget": 0.05},
    "error=0.05": {"error": 0.05},
    "error=0.2": {"error": 0.2},
    "budget=0.06, indexed": {"budget": 0.06, "mode": "indexed"},
}
DEPTHS = (0.2, 0.5, 0.8)
ASKED = ("shared", "snapkv", "sinks-window")
PASSKEY_BUDGET = 0.1


def measure() -> list[Row]:
    """Compress one prompt in every mode, then ask for pass keys."""
    model, tokenizer, _ = load_model("smollm2")
    ids = token_ids(load_text(TEXT), tokenizer, PROMPT + CONTINUATION)
    reading = read(model, ids, PROMPT, QUERIES)
    rows = [
        row for name in SETTINGS for row in _mode(model, reading, name, SETTINGS[name])
    ]
    return rows + _passkeys(model, tokenizer)


def _mode(
    model: PreTrainedModel, reading: Reading, name: str, settings: dict[str, Any]
) -> list[Row]:
    with cache_attention(model):
        cache = LargePromptCache(model, minimum_length=1, **settings)
        fill(cache, reading, model.device)
        cache.compress()
        report = cache.report()
        logits = next_logits(model, cache, reading.continuation)
    found = distance(reading.log_probabilities, logits, reading.continuation)
    facts = dataclasses.asdict(found) | {"mean held-out error": report.mean_error}
    return [
        _row(f"{name}: bytes over an exact cache's", "x", report.share, facts),
        _row(f"{name}: KL", "nats", found.kl, facts),
        _row(f"{name}: top-1 agreement", "", found.top1, facts),
    ]


def _passkeys(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> list[Row]:
    """Hide a sentence at three depths and count the answers of the exact cache."""
    text = token_ids(load_text(TEXT), tokenizer, PROMPT)
    same: dict[str, list[bool]] = {name: [] for name in ASKED}
    answers: dict[str, list[str]] = {}
    for depth in DEPTHS:
        whole = hidden(tokenizer, text, PROMPT, depth)
        reading = read(model, whole, PROMPT, QUERIES)
        exact = answered(model, reading, None, 1.0)
        answers.setdefault("exact", []).append(str(tokenizer.decode(exact)))
        for name, method in chosen_methods(ASKED).items():
            assert isinstance(method, Cached)
            answer = answered(model, reading, method, PASSKEY_BUDGET)
            same[name].append(answer == exact)
            answers.setdefault(name, []).append(str(tokenizer.decode(answer)))
    return [
        _row(
            f"pass keys answered as by the exact cache, {name}, {PASSKEY_BUDGET:.0%}",
            "",
            statistics.fmean(found),
            answers,
        )
        for name, found in same.items()
    ]


def _row(quantity: str, unit: str, value: float, details: dict[str, Any]) -> Row:
    return Row("cache_modes", quantity, unit, value, value, value, details)
