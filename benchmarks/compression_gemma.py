"""Compression of long prompts of Gemma 3 270M, whose wheels are the user's choice.

Only its three layers of full attention are compressed; the others hold 512 tokens.
"""

from benchmarks.compression import BUDGETS, CONTINUATION, evaluated
from benchmarks.record import Row
from largeprompt.hf.evaluation_methods import chosen_methods
from largeprompt.hf.evaluation_plan import EvaluationPlan

TESTS = ["tests/compress/test_compress_baselines.py", "tests/hf/test_hf_evaluation.py"]
DISTRIBUTIONS = ["largeprompt", "numpy", "torch", "transformers"]
TEXTS = ("speeches", "code")
PROMPT = 15872
COMPARED = ("shared", "calibrated", "snapkv", "moments", "sinks-window")


def measure() -> list[Row]:
    """Evaluate the methods on prose and on code."""
    plan = EvaluationPlan(
        methods=chosen_methods(COMPARED),
        budgets=BUDGETS,
        prompt_tokens=PROMPT,
        continuation=CONTINUATION,
    )
    return evaluated("compression_gemma", "gemma3", TEXTS, plan)
