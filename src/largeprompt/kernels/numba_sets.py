"""Linear sets of one KV head: log-masses first, outputs where they count."""

from typing import Any, NamedTuple

import numpy as np

from largeprompt.kernels.numba_arithmetic import compiled, exponential
from largeprompt.kernels.numba_rows import Running, dot_products, raise_peak

# a mass this many nats below the running maximum is lost in float32 rounding
NEGLIGIBLE = np.float32(20)


class Sets(NamedTuple):
    """The fields of `LinearSets`, for one KV head or for all."""

    base: Any
    key_mean: Any
    value_mean: Any
    directions: Any
    variances: Any
    responses: Any
    gain: Any
    damping: Any
    reach: Any


class Predicted(NamedTuple):
    """What the sets say before any value is read.

    Attributes:
        mass: Log-masses, [g, c].
        damping: What multiplies the responses, [g, c].
        coordinates: z, [c, g, r].
    """

    mass: Any
    damping: Any
    coordinates: Any


@compiled
def predict(tilt: Any, sets: Sets) -> Predicted:
    """Return every set's log-mass, damping and coordinates of the tilt."""
    groups = tilt.shape[0]
    count, rank = sets.variances.shape
    mass = np.empty((groups, count), np.float32)
    damping = np.empty((groups, count), np.float32)
    coordinates = np.empty((count, groups, rank), np.float32)
    last = sets.gain.shape[2] - 1
    for c in range(count):
        dot_products(tilt, sets.key_mean[c], mass, c)
        for i in range(rank):
            dot_products(tilt, sets.directions[c, i], coordinates[c], i)
        per_step = np.float32(last) / sets.reach[c]
        for g in range(groups):
            square = np.float32(0)
            for i in range(rank):
                z = coordinates[c, g, i]
                square += sets.variances[c, i] * z * z
            place = np.sqrt(square) * per_step
            left = int(min(np.floor(place), np.float32(last - 1)))
            share = place - np.float32(left)
            gain, fall = sets.gain[g, c], sets.damping[g, c]
            mass[g, c] += sets.base[g, c] + gain[left]
            mass[g, c] += share * (gain[left + 1] - gain[left])
            inside = min(share, np.float32(1))
            damping[g, c] = fall[left] + inside * (fall[left + 1] - fall[left])
    return Predicted(mass, damping, coordinates)


@compiled
def choose(mass: Any, state: Running, starts: Any, keys: int, opened: Any) -> None:
    """Open the clusters with most mass for each key, as `Indexed.choose` does."""
    groups, count = mass.shape
    density = np.zeros(count, np.float32)
    for g in range(groups):
        highest = state.peak[g]
        for c in range(count):
            highest = max(highest, mass[g, c])
        if highest == -np.inf:
            continue
        whole = state.total[g] * exponential(state.peak[g] - highest)
        for c in range(count):
            whole += exponential(mass[g, c] - highest)
        for c in range(count):
            density[c] += exponential(mass[g, c] - highest) / whole
    for c in range(count):
        density[c] /= np.float32(max(starts[c + 1] - starts[c], 1))
    left = keys - starts[0]
    for c in np.argsort(-density):
        size = starts[c + 1] - starts[c]
        if 0 < size <= left:
            opened[c] = True
            left -= size


@compiled
def add_sets(
    sets: Sets, seen: Predicted, opened: Any, by_direction: bool, state: Running
) -> None:
    """Add the sets that are not opened to the running softmax of every tilt.

    Their responses are [sets, rank, width] where `by_direction`, else [sets, width,
    rank].
    """
    groups, width = state.output.shape
    count, rank = sets.variances.shape
    for g in range(groups):
        highest = np.float32(-np.inf)
        for c in range(count):
            if not opened[c]:
                highest = max(highest, seen.mass[g, c])
        raise_peak(state, g, highest)
    for c in range(count):
        if opened[c]:
            continue
        for g in range(groups):
            if not seen.mass[g, c] > state.peak[g] - NEGLIGIBLE:
                continue
            weight = exponential(seen.mass[g, c] - state.peak[g])
            state.total[g] += weight
            output, z = state.output[g], seen.coordinates[c, g]
            value = sets.value_mean[c]
            for j in range(width):
                output[j] += weight * value[j]
            weight *= seen.damping[g, c]
            if by_direction:
                for i in range(rank):
                    part, response = weight * z[i], sets.responses[c, i]
                    for j in range(width):
                        output[j] += part * response[j]
            else:
                for j in range(width):
                    shift, response = np.float32(0), sets.responses[c, j]
                    for i in range(rank):
                        shift += response[i] * z[i]
                    output[j] += weight * shift
