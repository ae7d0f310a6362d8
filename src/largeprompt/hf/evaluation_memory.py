"""The largest memory that reading and compressing a prompt takes."""

import gc
import sys
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor
from transformers import PreTrainedModel

from largeprompt.hf.attention_cache import cache_attention
from largeprompt.hf.cache import LargePromptCache
from largeprompt.hf.evaluation_methods import Cached, cache_settings
from largeprompt.hf.evaluation_reading import cache_argument

STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def prefill_peak_bytes(
    model: PreTrainedModel,
    prompt: Int64[Tensor, " n"],
    method: Cached | None,
    budget: float,
) -> int | None:
    """Read a prompt into a new cache and return the peak above what was held before.

    Resident memory on the CPU, allocated memory on CUDA.

    Args:
        model: The model.
        prompt: The tokens.
        method: How each layer is compressed as soon as it has read them.
        budget: The share of the bytes that each KV head may hold; 1 is an exact cache.

    Returns:
        Bytes, or None on a system that does not say.
    """
    gc.collect()
    cuda = model.device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats(model.device)
        before = torch.cuda.memory_allocated(model.device)
    elif sys.platform == "linux":
        try:
            FORGET.write_text("5")  # the peak starts again from what is resident now
        except OSError:
            return None
        before = _status("VmRSS")
    else:
        return None
    with cache_attention(model), torch.inference_mode():
        settings = cache_settings(method, budget)
        cache = LargePromptCache(
            model, minimum_length=1, prompt_length=len(prompt), **settings
        )
        model.base_model(
            input_ids=prompt[None].to(model.device), **{cache_argument(model): cache}
        )
    if cuda:
        return torch.cuda.max_memory_allocated(model.device) - before
    return _status("VmHWM") - before


def _status(name: str) -> int:
    """Return an entry of the process's memory, in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"Linux lists {name} in {STATUS}")
