"""One query step over a compressed or an indexed prompt, as fast as memory allows."""

from largeprompt.kernels.base import Kernel
from largeprompt.kernels.choice import fastest, numba_kernel, triton_kernel
from largeprompt.kernels.reference import ReferenceKernel
from largeprompt.kernels.tail import Tail

__all__ = [
    "Kernel",
    "ReferenceKernel",
    "Tail",
    "fastest",
    "numba_kernel",
    "triton_kernel",
]
