"""Compression of long prompts of Gemma 3 270M, whose wheels are the user's choice.

Only its three layers of full attention are compressed; the others hold 512 tokens.
"""

from benchmarks.compression import evaluated
from benchmarks.record import Row

TESTS = ["tests/compress/test_compress_baselines.py", "tests/hf/test_hf_evaluation.py"]
DISTRIBUTIONS = ["largeprompt", "numpy", "torch", "transformers"]
TEXTS = ("speeches", "code")
PROMPT = 15872
COMPARED = ("shared", "calibrated", "snapkv", "moments", "sinks-window")


def measure() -> list[Row]:
    """Evaluate the methods on prose and on code."""
    return evaluated("compression_gemma", "gemma3", TEXTS, COMPARED, PROMPT)
