"""Compression of prompts of the embedded model, method beside method, end to end.

A continuation that repeats its prompt asks for retrieval: the rows say of each text how
much of the continuation had stood in the prompt.
"""

import statistics
from collections.abc import Sequence

from benchmarks.record import Row
from largeprompt.hf import load_model, load_text
from largeprompt.hf.evaluation import evaluate_compression
from largeprompt.hf.evaluation_cell import EXACT
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
TEXTS = ("speeches", "code", "prose")
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
QUANTITIES = {
    "mean_error": ("head error", ""),
    "late_error": ("450 tokens later", ""),
    "kl": ("KL", "nats"),
    "increase": ("increase of the NLL", "nats"),
    "top1": ("top-1 agreement", ""),
}


def measure() -> list[Row]:
    """Evaluate the methods on prose and on code."""
    return evaluated("compression", "smollm2", TEXTS, COMPARED, PROMPT)


def evaluated(
    case: str, name: str, texts: Sequence[str], compared: Sequence[str], prompt: int
) -> list[Row]:
    """Evaluate methods after prompts of a length, and return the rows of a case."""
    plan = EvaluationPlan(
        methods=chosen_methods(compared),
        budgets=BUDGETS,
        prompt_tokens=prompt,
        continuation=CONTINUATION,
    )
    model, tokenizer, description = load_model(name)
    loaded = [load_text(text) for text in texts]
    total = plan.prompt_tokens + plan.continuation
    rows = []
    for text in loaded:
        tokens = token_ids(text, tokenizer, total).tolist()
        share = repeated_share(tokens, plan.prompt_tokens)
        quantity = f"share of the continuation that repeats the prompt, {text.name}"
        rows.append(Row(case, quantity, "", share, share, share))
    result = evaluate_compression(model, tokenizer, loaded, plan, description)
    return rows + rows_of(case, result)


def rows_of(case: str, result: CompressionResult) -> list[Row]:
    """Return a row for each quantity of each method, budget and text."""
    rows = []
    exact = {c["text"]: c["nll"] for c in result.summary if c["method"] == EXACT}
    for cell in result.summary:
        if cell["method"] == EXACT:
            continue
        where = f"{cell['method']}, {100 * cell['budget']:g}%, {cell['text']}"
        known = {**cell, "increase": cell["nll"] - exact[cell["text"]]}
        for name, (quantity, unit) in QUANTITIES.items():
            value = known[name]
            rows.append(
                Row(case, f"{quantity}, {where}", unit, value, value, value, known)
            )
    return rows


def repeated_share(tokens: list[int], prompt: int) -> float:
    """Return the share of the continuation's runs of tokens that the prompt holds."""
    runs = [tuple(tokens[i : i + RUN]) for i in range(len(tokens) - RUN + 1)]
    stood = set(runs[: prompt - RUN + 1])
    return statistics.fmean(run in stood for run in runs[prompt:])
