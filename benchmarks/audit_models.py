"""Audits of whole models at full length: cost, linear heads, and the law's success."""

import collections
import json
import resource
import subprocess
import sys
import time

import torch

from benchmarks.record import Row
from largeprompt.audit.drift_surface import drift_surface
from largeprompt.audit.surface import law_surface
from largeprompt.audit.verdict import MISSED
from largeprompt.errors import LargePromptError
from largeprompt.hf import audit_model, load_model, load_text
from largeprompt.report.scatter import rank_correlation

TESTS = ["tests/hf/test_hf_audit.py", "tests/audit"]
DISTRIBUTIONS = ["largeprompt", "numpy", "torch", "transformers"]
LENGTHS = {"smollm2": 8192, "gemma3": 16384}
TEXTS = ("prose", "code")
SHORTEST = 1024


def measure() -> list[Row]:
    """Audit each model that is installed on each text, in fresh processes."""
    return [row for name in LENGTHS if _installed(name) for row in _model(name)]


def _installed(name: str) -> bool:
    try:
        load_model(name)
    except LargePromptError:
        return False
    return True


def _model(name: str) -> list[Row]:
    rows = []
    for text in TEXTS:
        plain, audit = _fresh(name, text, "pass"), _fresh(name, text, "audit")
        title = f"{name}, {text}, {LENGTHS[name]:,} tokens"
        rows += [
            _once(f"time over a forward pass, {title}", "x", _over(audit, plain, 0)),
            _once(
                f"peak memory over a forward pass, {title}", "x", _over(audit, plain, 1)
            ),
            _once(
                f"rank correlation of the law and the measured error, {title}",
                "",
                audit["rank_correlation"],
            ),
            _once(
                f"heads where the law is off by more than {MISSED:g}, {title}",
                "heads",
                audit["missed"],
                audit["missed_because"],
            ),
        ]
        rows += [
            _once(
                f"linear heads at {entry['n']:,} tokens ({entry['source']}), "
                f"{name}, {text}",
                "share",
                entry["linear"] / entry["heads"],
                entry,
            )
            for entry in audit["outlook"]
        ]
    return rows


def _over(audit: dict, plain: dict, place: int) -> float:
    return audit["cost"][place] / plain["cost"][place]


def _fresh(name: str, text: str, what: str) -> dict:
    command = [sys.executable, "-m", "benchmarks.audit_models", name, text, what]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def _once(quantity: str, unit: str, value: float, details: dict | None = None) -> Row:
    """A row of a single run."""
    facts = {**(details or {}), "runs": 1}
    return Row("audit_models", quantity, unit, value, value, value, facts)


def work(name: str, text: str, what: str) -> dict:
    """Run a forward pass or an audit of one length; return its cost and findings."""
    model, tokenizer, description = load_model(name)
    n, content = LENGTHS[name], load_text(text)
    found: dict = {}
    if what == "pass":
        ids = tokenizer(content.content, return_tensors="pt").input_ids[:, :n]
        start = time.perf_counter()
        with torch.inference_mode():
            model.base_model(input_ids=ids, use_cache=False)
        seconds = time.perf_counter() - start
    else:
        law_surface()
        drift_surface()
        start = time.perf_counter()
        audit_model(model, tokenizer, content, [n], description=description)
        seconds = time.perf_counter() - start
        found["cost"] = [seconds, _peak()]
        lengths = [SHORTEST * 2**j for j in range((n // SHORTEST).bit_length())]
        found |= findings(
            audit_model(model, tokenizer, content, lengths, description=description)
        )
    return {"cost": [seconds, _peak()], **found}


def findings(result) -> dict:
    """Return the outlook of an audit, and where the law does not foretell the error."""
    n = result.summary["n"]
    rows = [row for row in result.heads.to_pylist() if row["n"] == n]
    missed = [
        row
        for row in rows
        if not 1 / MISSED
        <= row["limit_error_held_out"] / row["limit_error_law"]
        <= MISSED
    ]
    why = collections.Counter(_reason(row) for row in missed)
    return {
        "outlook": result.summary["outlook"],
        "rank_correlation": rank_correlation(
            rows, "limit_error_law", "limit_error_held_out"
        ),
        "missed": len(missed),
        "missed_because": dict(why),
    }


def _reason(row: dict) -> str:
    """The first of what the law assumes that a head's logits are not."""
    if row["limit_error_held_out"] < row["limit_error_law"]:
        return "the law asks for more than is seen"
    if row["sink_share"] > 0.5:
        return "sinks"
    if row["independent_tokens"] < row["effective_n"] / 2:
        return "tokens not independent"
    if row["proxy_ratio"] is not None and row["proxy_ratio"] > 1.5:
        return "heavy upper tail"
    return "other"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    print(json.dumps(work(*sys.argv[1:4])))
