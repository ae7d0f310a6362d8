"""Scalars of the numba kernels: an exponential that vectorises, half-precision rows."""

import hashlib
import math
import pathlib
from typing import Any

import numba
import numpy as np
from numba.extending import overload

# Sums may be reordered and fused; infinities and NaN keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}
FLOAT32, BFLOAT16, FLOAT16 = 0, 1, 2

LOWEST = np.float32(-87.0)  # e^-87 is float32's smallest normal number, nearly
LOG2_E = np.float32(math.log2(math.e))
LN2_HIGH = np.float32(0.693359375)  # few digits, so that its multiples are exact
LN2_LOW = np.float32(math.log(2) - 0.693359375)
HALF = np.float32(0.5)
# 1/k!: the Taylor polynomial is exact to float32 within half an octave of 0
C2, C3, C4, C5, C6, C7 = (np.float32(1 / math.factorial(k)) for k in range(2, 8))
ONE = np.float32(1)
HALF_RANGE = np.float32(2.0**112)  # from float16's exponents to float32's


def sources() -> str:
    """Return a digest of every numba kernel's source."""
    files = sorted(pathlib.Path(__file__).parent.glob("numba_*.py"))
    text = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(text).hexdigest()[:12]


SOURCES = sources()


def compiled(function: Any) -> Any:
    """Compile with numba, keeping the result on disk where there is a place for it.

    numba's cache looks at a function's own file, and compiled code holds what it calls
    in other files too: the cache's name carries the digest of all of them.
    """
    function.__qualname__ = f"{function.__name__}_{SOURCES}"
    options = {"fastmath": FAST, "nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no cache folder can be written
        return numba.njit(**options)(function)


@compiled
def exponential(x: Any) -> Any:
    """Return e^x for x from -infinity to 88, in float32; below e^-87 it is zero."""
    y = max(x, LOWEST)
    octaves = np.floor(y * LOG2_E + HALF)
    r = (y - octaves * LN2_HIGH) - octaves * LN2_LOW
    series = C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * C7))))
    power = np.int32((np.int32(octaves) + np.int32(127)) << np.int32(23))
    value = (ONE + r * (ONE + r * series)) * power.view(np.float32)
    return value if x > LOWEST else np.float32(0)


def row(array, index, scratch, kind):  # numba compares signatures, notes included
    """Return a row of keys or values in float32."""
    raise NotImplementedError  # numba replaces it by what `array` needs


@overload(row)
def _row(array, index, scratch, kind):
    """Read float32 in place; widen half precision into `scratch`."""
    if array.dtype == numba.float32:
        return lambda array, index, scratch, kind: array[index]

    def widened(array, index, scratch, kind):
        source = array[index]
        if kind == BFLOAT16:
            for j in range(source.shape[0]):
                bits = np.uint32(np.uint32(source[j]) << np.uint32(16))
                scratch[j] = bits.view(np.float32)
        else:
            for j in range(source.shape[0]):
                half = np.uint32(source[j])
                magnitude = np.uint32((half & np.uint32(0x7FFF)) << np.uint32(13))
                sign = np.uint32((half & np.uint32(0x8000)) << np.uint32(16))
                wide = np.float32(magnitude.view(np.float32) * HALF_RANGE)
                bits = np.uint32(wide.view(np.uint32) | sign)
                scratch[j] = bits.view(np.float32)
        return scratch

    return widened
