"""The errors of heads' outputs after a prompt was replaced by something smaller."""

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.baselines.feature_map import Mapped
from largeprompt.compress.compact import Compact
from largeprompt.compress.sets import merge
from largeprompt.hf.cache_answer import exact_answer
from largeprompt.hf.evaluation_reading import Reading

Summary = Compact | Mapped


def relative_errors(
    reading: Reading, layer: int, summary: Summary
) -> Float[Tensor, "h m"]:
    """Return |output - exact| / |exact| for each head and query of the continuation.

    The continuation's own tokens are exact, and the queries are those of the exact
    model: errors of earlier layers do not count here.
    """
    read = reading.layers[layer]
    key, value = (part[:, reading.prompt :] for part in (read.key, read.value))
    tilt = reading.later_tilts(layer).unflatten(0, (len(key), -1))
    m = tilt.shape[2]
    seen = torch.ones(m, m, dtype=torch.bool).tril()
    answers = summary.answer(tilt), exact_answer(tilt, key, value, seen)
    output = merge(
        Answer(
            torch.stack([answer.log_mass for answer in answers], -1),
            torch.stack([answer.output for answer in answers], -2),
        )
    ).output.flatten(0, 1)
    exact = read.output.float()
    return (output - exact).norm(dim=-1) / exact.norm(dim=-1)


def head_bytes(summary: Summary, kv_heads: int) -> list[float]:
    """Return what each KV head holds; what heads hold together is shared out evenly."""
    if isinstance(summary, Mapped):
        own = [float(features.nbytes) for features in summary.rest]
        atoms = head_bytes(summary.atoms, kv_heads)
        return [a + b for a, b in zip(atoms, own, strict=True)]
    atoms = summary.atoms
    token = (atoms.key.nbytes + atoms.value.nbytes) / max(1, len(atoms.key))
    common = summary.nbytes - token * len(atoms.key)
    counts = atoms.starts.diff().tolist()
    return [count * token + common / kv_heads for count in counts]


def median_over_queries(
    errors: Float[Tensor, "h m"], kv_heads: int
) -> Float[Tensor, " hkv"]:
    """Return each KV head's error: the mean over its query heads of the medians."""
    medians = torch.quantile(errors, 0.5, dim=-1)
    return medians.unflatten(0, (kv_heads, -1)).mean(-1)
