"""Decoding over a compressed or an indexed prompt: time beside SDPA, error on a model.

Times are of one thread, of 8 KV heads of width 128 in float32. The baseline is SDPA
with the queries of a KV head packed into one matrix, called in turn with the kernel,
which therefore finds nothing in the caches. Errors are of SmolLM2's own keys.
"""

import statistics
import time
from collections.abc import Callable

import torch

from benchmarks.kernel_errors import error_rows
from benchmarks.record import Row
from largeprompt.compress.compact import Atoms, Compact
from largeprompt.compress.indexed import Indexed
from largeprompt.compress.indexing import ClusterIndex
from largeprompt.compress.prompt import LayerPrompt
from largeprompt.kernels import numba_kernel

TESTS = ["tests/kernels", "tests/compress/test_compress_indexed.py"]
DISTRIBUTIONS = ["largeprompt", "numba", "numpy", "torch", "transformers"]
HEADS, WIDTH = 8, 128
LENGTHS = [32_768, 131_072]
GROUPS = [4, 1]
SHARE = 0.06  # of the keys that an indexed step reads, the always-read ones included
ATOMS = 1_024
REPEATS = 21
WARM_UP = 3


def measure() -> list[Row]:
    """Time both modes at two lengths, then state their errors on a real model."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows = [row for n in LENGTHS for row in _speeds(n)]
    finally:
        torch.set_num_threads(threads)
    return rows + error_rows(SHARE, ATOMS)


def _speeds(n: int) -> list[Row]:
    """Build one layer, and time it for each number of query heads."""
    generator = torch.Generator().manual_seed(0)
    spread = torch.linspace(1.5, 0.2, WIDTH)  # keys of a model are not isotropic
    key = torch.randn(HEADS, n, WIDTH, generator=generator) * spread
    value = torch.randn(HEADS, n, WIDTH, generator=generator)
    rows = []
    for groups in GROUPS:
        query = torch.randn(HEADS, groups, 32, WIDTH, generator=generator)
        valid = torch.ones(HEADS, n, dtype=torch.bool)
        prompt = LayerPrompt(key, value, valid, query, WIDTH**-0.5)
        start = time.perf_counter()
        indexed = ClusterIndex().index(prompt)
        built = time.perf_counter() - start
        tilts = query.transpose(1, 2) * WIDTH**-0.5
        details = {"groups": groups, "tokens": n, "build_seconds": built}
        rows += _against_sdpa(
            f"decode over packed SDPA, indexed, {SHARE:.0%} of {n:,} keys read, "
            f"{groups} queries a KV head",
            lambda tilt, held=indexed: numba_kernel().decode_indexed(
                tilt, held, round(SHARE * n)
            ),
            prompt,
            tilts,
            details,
        )
        compact = _compact(prompt)
        rows += _against_sdpa(
            f"decode over packed SDPA, compact, {ATOMS:,} atoms and a full-rank set "
            f"for {n:,} tokens, {groups} queries a KV head",
            lambda tilt, held=compact: numba_kernel().decode(tilt, held),
            prompt,
            tilts,
            details,
        )
    return rows


def _compact(prompt: LayerPrompt) -> Compact:
    """Keep the last tokens, and one set of every direction for all others."""
    starts = torch.arange(HEADS + 1) * ATOMS
    key, value = (
        tensor[:, -ATOMS:].reshape(-1, WIDTH) for tensor in (prompt.key, prompt.value)
    )
    one = ClusterIndex(clusters=1, rank=WIDTH, sinks=0, window=ATOMS)
    whole: Indexed = one.index(prompt)
    return Compact(Atoms(key, value, starts), whole.sets)


def _against_sdpa(
    quantity: str,
    step: Callable[[torch.Tensor], object],
    prompt: LayerPrompt,
    tilts: torch.Tensor,
    details: dict[str, object],
) -> list[Row]:
    """Alternate the kernel with SDPA, each time with another query."""
    ours, theirs = [], []
    for repeat in range(WARM_UP + REPEATS):
        tilt = tilts[:, repeat].contiguous()
        start = time.perf_counter()
        torch.nn.functional.scaled_dot_product_attention(
            tilt[None], prompt.key[None], prompt.value[None], scale=1.0
        )
        between = time.perf_counter()
        step(tilt)
        ours.append(time.perf_counter() - between)
        theirs.append(between - start)
    ours, theirs = ours[WARM_UP:], theirs[WARM_UP:]
    ratios = [there / here for here, there in zip(ours, theirs, strict=True)]
    milliseconds = [1e3 * seconds for seconds in ours]
    return [
        Row(
            "kernels",
            f"{name}{quantity}",
            unit,
            statistics.median(values),
            min(values),
            max(values),
            details
            | {
                "sdpa_milliseconds": 1e3 * statistics.median(theirs),
                "ratio_of_medians": statistics.median(theirs) / statistics.median(ours),
                "heads": HEADS,
                "width": WIDTH,
                "threads": 1,
                "dtype": "float32",
                "repeats": REPEATS,
            },
        )
        for name, unit, values in (
            ("speed of ", "x", ratios),
            ("time of ", "ms", milliseconds),
        )
    ]
