"""Compression of prompts of the embedded model, method beside method, end to end.

A continuation that repeats its prompt asks for retrieval: the rows say of each text how
much of the continuation had stood in the prompt.
"""

import statistics
from typing import Any

from benchmarks.record import Row
from largeprompt.hf import load_model, load_text
from largeprompt.hf.evaluation import evaluate_compression
from largeprompt.hf.evaluation_methods import chosen_methods
from largeprompt.hf.evaluation_plan import EvaluationPlan
from largeprompt.hf.evaluation_result import CompressionResult
from largeprompt.hf.texts import token_ids

TESTS = [
    "tests/compress/test_compress_baselines.py",
    "tests/hf/test_hf_evaluation.py",
    "tests/test_cli_compress_eval.py",
]
DISTRIBUTIONS = ["largeprompt", "numpy", "torch", "transformers"]
TEXTS = ("speeches", "code")
BUDGETS = (0.05, 0.1)
PROMPT, CONTINUATION = 7680, 512
RUN = 8  # tokens that stood in the prompt in this order count as repeated
COMPARED = (
    "shared",
    "calibrated",
    "snapkv",
    "moments",
    "plain-moments",
    "expected-attention",
    "sinks-window",
)
PLAN = EvaluationPlan(
    methods=chosen_methods(COMPARED),
    budgets=BUDGETS,
    prompt_tokens=PROMPT,
    continuation=CONTINUATION,
)
QUANTITIES = {
    "mean_error": ("mean head error", ""),
    "late_error": ("mean head error 450 tokens later", ""),
    "kl": ("KL of the next token", "nats"),
    "top1": ("top-1 agreement", ""),
    "nll": ("NLL of the continuation", "nats"),
    "accuracy": ("top-1 accuracy on the text", ""),
    "ms_per_token": ("time of one token", "ms"),
    "build_s": ("time of compression", "s"),
}


def measure() -> list[Row]:
    """Evaluate the methods on prose and on code."""
    model, tokenizer, description = load_model("smollm2")
    texts = [load_text(name) for name in TEXTS]
    repeated = {
        text.name: repeated_share(
            token_ids(text, tokenizer, PROMPT + CONTINUATION).tolist()
        )
        for text in texts
    }
    result = evaluate_compression(model, tokenizer, texts, PLAN, description)
    return [
        *(
            _row(f"share of the continuation that repeats the prompt, {text}", "", x)
            for text, x in repeated.items()
        ),
        *rows_of(result),
    ]


def rows_of(result: CompressionResult) -> list[Row]:
    """Return a row for each quantity of each method, budget and text."""
    rows = []
    for cell in result.summary:
        where = f"{cell['method']}, {100 * cell['budget']:g}%, {cell['text']}"
        for name, (quantity, unit) in QUANTITIES.items():
            if cell[name] is not None and (name, cell["method"]) != ("kl", "exact"):
                rows.append(_row(f"{quantity}, {where}", unit, cell[name], cell))
    asked: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for row in result.passkeys:
        asked.setdefault((row["method"], row["budget"]), []).append(row)
    for (method, budget), answers in asked.items():
        share = statistics.fmean(row["as_exact"] for row in answers)
        quantity = f"pass keys answered as the exact cache, {method}, {100 * budget:g}%"
        rows.append(_row(quantity, "", share, {"answers": answers}))
    return rows


def repeated_share(tokens: list[int]) -> float:
    """Return the share of the continuation's runs of tokens that the prompt holds."""
    runs = [tuple(tokens[i : i + RUN]) for i in range(len(tokens) - RUN + 1)]
    prompt = set(runs[: PROMPT - RUN + 1])
    return statistics.fmean(run in prompt for run in runs[PROMPT:])


def _row(
    quantity: str, unit: str, value: float, details: dict[str, Any] | None = None
) -> Row:
    return Row("compression", quantity, unit, value, value, value, details or {})
