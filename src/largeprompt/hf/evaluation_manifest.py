"""What was evaluated, how, with what and where."""

import datetime
import importlib.metadata
import os
import platform
import time
from collections.abc import Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from largeprompt.audit.manifest import peak_rss_bytes
from largeprompt.hf.evaluation_plan import EvaluationPlan
from largeprompt.hf.evaluation_result import DEFINITIONS, FORMAT
from largeprompt.hf.models import ModelDescription
from largeprompt.hf.texts import Text

PACKAGES = ("largeprompt", "torch", "transformers", "numpy", "pyarrow")


def evaluation_manifest(
    model: PreTrainedModel,
    description: ModelDescription,
    texts: Sequence[Text],
    plan: EvaluationPlan,
    started: float,
) -> dict[str, Any]:
    """Return the manifest of an evaluation that ends now; it draws nothing.

    Args:
        model: What was evaluated.
        description: Where it came from.
        texts: What it read.
        plan: The arguments.
        started: `time.perf_counter()` when the evaluation began.
    """
    config = model.config.get_text_config()
    heads = config.num_attention_heads
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "format": FORMAT,
        "model": {
            "name": description.name,
            "source": description.source,
            "sha256": description.sha256,
            "architecture": type(model).__name__,
            "layers": config.num_hidden_layers,
            "heads": heads,
            "kv_heads": getattr(config, "num_key_value_heads", None) or heads,
            "dtype": str(model.dtype).removeprefix("torch."),
        },
        "texts": {text.name: text.sha256 for text in texts},
        "arguments": {
            "budgets": list(plan.budgets),
            "prompt_tokens": plan.prompt_tokens,
            "continuation": plan.continuation,
            "queries": plan.queries,
            "error_queries": plan.error_queries,
            "passkey_depths": list(plan.passkey_depths),
        },
        "methods": {name: repr(method) for name, method in plan.methods.items()},
        "versions": {**versions, "python": platform.python_version()},
        "seed": None,
        "machine": (
            f"{platform.platform()}, {os.cpu_count()} cores, "
            f"{torch.get_num_threads()} threads"
        ),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seconds": time.perf_counter() - started,
        "peak_rss_bytes": peak_rss_bytes(),
        "definitions": DEFINITIONS,
    }
