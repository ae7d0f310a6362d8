"""Exact attention over a run of rows, added to a running softmax."""

from typing import Any, NamedTuple

import numpy as np

from largeprompt.kernels.numba_arithmetic import compiled, exponential, row

BLOCK = 64  # rows between two looks at the running maximum
STRIP = 4  # queries, or rows, that one pass over memory serves


class Running(NamedTuple):
    """The running softmax of the `g` query heads of one KV head, and room to work.

    Attributes:
        peak: The largest logit so far, [g].
        total: The sum of weights relative to it, [g].
        output: The weighted sum of values, [g, v].
        logits: Room for a block of logits, [g, BLOCK].
        scratch: Room for widened rows, [STRIP, max(k, v)].
    """

    peak: Any
    total: Any
    output: Any
    logits: Any
    scratch: Any


@compiled
def running(output: Any, width: int) -> Running:
    """Start a softmax that has seen nothing; `output` must hold zeros."""
    groups = output.shape[0]
    return Running(
        np.full(groups, -np.inf, np.float32),
        np.zeros(groups, np.float32),
        output,
        np.empty((groups, BLOCK), np.float32),
        np.empty((STRIP, max(width, output.shape[1])), np.float32),
    )


@compiled
def dot_products(tilt: Any, key: Any, logits: Any, place: int) -> None:
    """Write the dot products of one key with every tilt to `logits[:, place]`."""
    groups, width = tilt.shape
    g = 0
    while g + STRIP <= groups:
        a = b = c = d = np.float32(0)
        for j in range(width):
            a += tilt[g, j] * key[j]
            b += tilt[g + 1, j] * key[j]
            c += tilt[g + 2, j] * key[j]
            d += tilt[g + 3, j] * key[j]
        logits[g, place] = a
        logits[g + 1, place] = b
        logits[g + 2, place] = c
        logits[g + 3, place] = d
        g += STRIP
    while g < groups:
        a = np.float32(0)
        for j in range(width):
            a += tilt[g, j] * key[j]
        logits[g, place] = a
        g += 1


@compiled
def raise_peak(state: Running, g: int, highest: float) -> None:
    """Let a query head's softmax count from a maximum of at least `highest`."""
    if highest > state.peak[g]:
        scale = exponential(state.peak[g] - highest)
        state.total[g] *= scale
        for j in range(state.output.shape[1]):
            state.output[g, j] *= scale
        state.peak[g] = highest


@compiled
def weigh(state: Running, g: int, count: int) -> None:
    """Turn a block's logits into weights under the running maximum."""
    logits = state.logits[g]
    highest = logits[0]
    for i in range(1, count):
        highest = max(highest, logits[i])
    raise_peak(state, g, highest)
    peak, mass = state.peak[g], np.float32(0)
    for i in range(count):
        logits[i] = exponential(logits[i] - peak)
        mass += logits[i]
    state.total[g] += mass


@compiled
def read_rows(
    tilt: Any, key: Any, value: Any, kind: int, first: int, last: int, state: Running
) -> None:
    """Add rows `first` to `last` to the running softmax of every tilt of a KV head."""
    start = first
    while start < last:
        count = min(BLOCK, last - start)
        for i in range(count):
            seen = row(key, start + i, state.scratch[0], kind)
            dot_products(tilt, seen, state.logits, i)
        for g in range(tilt.shape[0]):
            weigh(state, g, count)
        add_values(value, kind, start, count, state)
        start += count


@compiled
def add_values(value: Any, kind: int, start: int, count: int, state: Running) -> None:
    """Add a block's weighted values, four rows to a pass over the output."""
    output, weights, scratch = state.output, state.logits, state.scratch
    groups, width = output.shape
    i = 0
    while i + STRIP <= count:
        a = row(value, start + i, scratch[0], kind)
        b = row(value, start + i + 1, scratch[1], kind)
        c = row(value, start + i + 2, scratch[2], kind)
        d = row(value, start + i + 3, scratch[3], kind)
        for g in range(groups):
            wa, wb = weights[g, i], weights[g, i + 1]
            wc, wd = weights[g, i + 2], weights[g, i + 3]
            for j in range(width):
                output[g, j] += wa * a[j] + wb * b[j] + wc * c[j] + wd * d[j]
        i += STRIP
    while i < count:
        a = row(value, start + i, scratch[0], kind)
        for g in range(groups):
            for j in range(width):
                output[g, j] += weights[g, i] * a[j]
        i += 1


@compiled
def finish(state: Running, log_mass: Any) -> None:
    """Turn the running sums into log-masses and outputs."""
    for g in range(state.output.shape[0]):
        log_mass[g] = -np.inf
        if state.total[g] > 0:
            log_mass[g] = state.peak[g] + np.log(state.total[g])
            for j in range(state.output.shape[1]):
                state.output[g, j] /= state.total[g]
