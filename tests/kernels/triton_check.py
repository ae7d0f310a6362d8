"""Compares Triton's kernel, run by its interpreter, with the float64 definition.

A process of its own: TRITON_INTERPRET is read when a kernel is defined.
"""

import dataclasses
import sys

import torch

from largeprompt.kernels import ReferenceKernel, triton_kernel
from tests.kernels import layers, naive
from tests.kernels.test_kernels_decode import atoms_of, logit_sum


def main(groups: int, width: int, value_width: int) -> None:
    shape = (groups, width, value_width)
    kernel, tilt = triton_kernel(), layers.tilts(shape)
    largest = logit_sum(tilt)
    sets = layers.random_sets(shape, 5, 3)
    for dtype in layers.DTYPES:
        later = layers.tail(shape, dtype)
        layer = layers.compact(shape, dtype, sets)
        exact = naive.decode(tilt, atoms_of(layer), sets, None, later)
        answer = kernel.decode(tilt, layer, later)
        assert naive.agrees(answer, exact, largest, width), f"compact, {dtype}"
        indexed = layers.indexed(shape, dtype)
        reference = ReferenceKernel().decode_indexed(
            tilt.double(), indexed, layers.KEYS, later
        )
        answer = kernel.decode_indexed(tilt, indexed, layers.KEYS, later)
        assert naive.agrees(answer, reference, largest, width), f"indexed, {dtype}"
    later = layers.tail(shape, torch.float32)
    layer = layers.compact(shape, torch.float32, sets)
    exact = naive.decode(tilt, atoms_of(layer), sets, None, later)
    empty = kernel.decode(tilt, dataclasses.replace(layer, sets=None))
    assert empty.log_mass[1].isneginf().all(), "a head without atoms has no mass"
    assert (empty.output[1] == 0).all(), "a head without atoms answers zero"
    lengths = (later.lengths - 1).clamp_min(0)
    shorter = kernel.decode(tilt, layer, dataclasses.replace(later, lengths=lengths))
    assert not naive.agrees(shorter, exact, largest, width), "the check sees a fault"


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*map(int, sys.argv[1:]))
    print("agrees")
