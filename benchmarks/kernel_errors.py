"""What the decoding modes leave out, on the keys, values and queries of a real model.

The prompt is indexed or compressed after all but its last 64 tokens; each of these then
asks with its own query, later tokens up to its own exact. The error of a head is the
median over the queries of its output's relative error; rows tell its median, least and
most over heads, and the mean in their details.
"""

import statistics

import torch

from benchmarks.record import Row
from largeprompt.audit.limits import Answer
from largeprompt.compress.calibrated import CalibratedLimit
from largeprompt.compress.indexing import ClusterIndex
from largeprompt.compress.prompt import LayerPrompt
from largeprompt.hf import load_model, load_text
from largeprompt.hf.attention import LayerRecord, recording
from largeprompt.hf.texts import token_ids
from largeprompt.kernels import Tail
from largeprompt.kernels.numba_decoding import NumbaKernel
from largeprompt.kernels.reference import joined, tail_answers

TOKENS = 8_192
ASKING = 64
CALIBRATION = 128
WINDOW = 256


def error_rows(share: float, atoms: int) -> list[Row]:
    """Return the errors on both built-in texts, of every second layer."""
    rows = []
    model, tokenizer, _ = load_model("smollm2")
    for name in ("prose", "code"):
        errors: dict[str, list[float]] = {}

        def look(record: LayerRecord, errors: dict[str, list[float]] = errors) -> None:
            if record.layer % 2 == 0:
                for method, values in layer_errors(record, share, atoms).items():
                    errors.setdefault(method, []).extend(values)

        tokens = token_ids(load_text(name), tokenizer, TOKENS)
        with torch.inference_mode(), recording(model, look):
            model.base_model(input_ids=tokens[None], use_cache=False)
        rows += [
            Row(
                "kernels",
                f"relative error of a head's output, {method}, "
                f"SmolLM2 reading {TOKENS:,} tokens of {name}",
                "1",
                statistics.median(values),
                min(values),
                max(values),
                {"mean_over_heads": statistics.mean(values), "heads": len(values)},
            )
            for method, values in errors.items()
        ]
    return rows


def layer_errors(
    record: LayerRecord, share: float, atoms: int
) -> dict[str, list[float]]:
    """Return each method's errors, one for each query head of the layer."""
    kv_heads, n, width = record.key.shape
    past = n - ASKING
    query = record.query.reshape(kv_heads, -1, n, width)
    prompt = LayerPrompt(
        record.key[:, :past],
        record.value[:, :past],
        torch.ones(kv_heads, past, dtype=torch.bool),
        query[:, :, past - CALIBRATION : past],
        record.scale,
    )
    kernel, keys = NumbaKernel(), round(share * n)
    index = ClusterIndex().index(prompt)
    wide = ClusterIndex(window=WINDOW).index(prompt)
    budget = torch.full((kv_heads,), atoms + width + 1.0)
    compact = CalibratedLimit().compress(prompt, budget)
    extra = WINDOW + ClusterIndex().sinks

    def opened_only(tilt: torch.Tensor, tail: Tail) -> Answer:
        _, opened = kernel.decode_and_show(tilt, index, keys, tail)
        return joined(index.read(tilt, opened), *tail_answers(tilt, tail))

    methods = {
        f"indexed, {share:.0%} of the keys read": lambda tilt, tail: (
            kernel.decode_indexed(tilt, index, keys, tail)
        ),
        f"indexed, {share:.0%} of the keys and {extra} ends read": lambda tilt, tail: (
            kernel.decode_indexed(tilt, wide, keys + extra, tail)
        ),
        f"clusters of {share:.0%} of the keys read, the rest dropped": opened_only,
        f"compact, the memory of {atoms:,} atoms and a full-rank set": (
            lambda tilt, tail: kernel.decode(tilt, compact, tail)
        ),
    }
    errors: dict[str, list[torch.Tensor]] = {name: [] for name in methods}
    for position in range(past, n):
        tilt = (query[:, :, position] * record.scale).contiguous()
        seen = slice(0, position + 1)
        weights = (tilt @ record.key[:, seen].mT).softmax(-1)
        exact = weights @ record.value[:, seen]
        later = slice(past, position + 1)
        lengths = torch.full((kv_heads,), position + 1 - past)
        tail = Tail(record.key[:, later], record.value[:, later], lengths)
        for name, step in methods.items():
            off = (step(tilt, tail).output - exact).norm(dim=-1)
            errors[name].append(off / exact.norm(dim=-1))
    return {
        name: torch.stack(values).median(0).values.flatten().tolist()
        for name, values in errors.items()
    }
