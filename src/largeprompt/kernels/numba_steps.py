"""One query step over all KV heads of a layer, on one thread."""

from typing import Any, NamedTuple

import numpy as np

from largeprompt.kernels.numba_arithmetic import compiled
from largeprompt.kernels.numba_rows import finish, read_rows, running
from largeprompt.kernels.numba_sets import Sets, add_sets, choose, predict


class Tokens(NamedTuple):
    """Keys and values of every KV head, and where each begins.

    Attributes:
        key: Rows of keys, [rows, k].
        value: Rows of values, [rows, v].
        kind: How a half-precision row is widened.
        starts: Row numbers: [b + 1] for atoms, [b, c + 1] for clusters.
    """

    key: Any
    value: Any
    kind: int
    starts: Any


class Later(NamedTuple):
    """The tail of every KV head: [b * room, k], [b * room, v] and [b] lengths."""

    key: Any
    value: Any
    lengths: Any


@compiled
def sets_of(sets: Sets, head: int) -> Sets:
    """Return the sets of one KV head."""
    return Sets(
        sets.base[head],
        sets.key_mean[head],
        sets.value_mean[head],
        sets.directions[head],
        sets.variances[head],
        sets.responses[head],
        sets.gain[head],
        sets.damping[head],
        sets.reach[head],
    )


@compiled
def compact_step(
    tilt: Any,
    tokens: Tokens,
    later: Later,
    sets: Sets,
    by_direction: bool,
    log_mass: Any,
    output: Any,
) -> None:
    """Answer over ragged atoms, the tail and every linear set."""
    heads, _, width = tilt.shape
    room = later.key.shape[0] // heads
    unopened = np.zeros(sets.base.shape[2], np.bool_)
    for b in range(heads):
        state, u, kind = running(output[b], width), tilt[b], tokens.kind
        first, last = tokens.starts[b], tokens.starts[b + 1]
        read_rows(u, tokens.key, tokens.value, kind, first, last, state)
        first, last = b * room, b * room + later.lengths[b]
        read_rows(u, later.key, later.value, kind, first, last, state)
        own = sets_of(sets, b)
        add_sets(own, predict(u, own), unopened, by_direction, state)
        finish(state, log_mass[b])


@compiled
def indexed_step(
    tilt: Any,
    tokens: Tokens,
    later: Later,
    sets: Sets,
    by_direction: bool,
    keys: int,
    log_mass: Any,
    output: Any,
    opened: Any,
) -> None:
    """Answer over what is always read, the tail, some clusters and the other sets."""
    heads, _, width = tilt.shape
    held = tokens.key.shape[0] // heads
    room = later.key.shape[0] // heads
    for b in range(heads):
        state, u, kind = running(output[b], width), tilt[b], tokens.kind
        starts, origin = tokens.starts[b], b * held
        last = origin + starts[0]
        read_rows(u, tokens.key, tokens.value, kind, origin, last, state)
        first, last = b * room, b * room + later.lengths[b]
        read_rows(u, later.key, later.value, kind, first, last, state)
        own = sets_of(sets, b)
        predicted = predict(u, own)
        choose(predicted.mass, state, starts, keys, opened[b])
        for c in range(opened.shape[1]):
            if opened[b, c]:
                first, last = origin + starts[c], origin + starts[c + 1]
                read_rows(u, tokens.key, tokens.value, kind, first, last, state)
        add_sets(own, predicted, opened[b], by_direction, state)
        finish(state, log_mass[b])
