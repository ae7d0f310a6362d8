"""Which kernel to use: the fastest that is installed and reads the tensors' device."""

import importlib.util

import torch

from largeprompt.errors import MissingKernelError
from largeprompt.kernels.base import Kernel
from largeprompt.kernels.reference import ReferenceKernel


def fastest(device: torch.device) -> Kernel:
    """Return Triton's kernel on CUDA and numba's on the CPU, else the reference."""
    if device.type == "cuda" and installed("triton"):
        return triton_kernel()
    if device.type == "cpu" and installed("numba"):
        return numba_kernel()
    return ReferenceKernel()


def numba_kernel() -> Kernel:
    """Return the CPU's kernel.

    Raises:
        MissingKernelError: numba is not installed.
    """
    if not installed("numba"):
        raise MissingKernelError(
            "numba is not installed; pip install 'largeprompt[hf]' brings it"
        )
    from largeprompt.kernels.numba_decoding import NumbaKernel

    return NumbaKernel()


def triton_kernel() -> Kernel:
    """Return the GPU's kernel.

    Raises:
        MissingKernelError: Triton is not installed.
    """
    if not installed("triton"):
        raise MissingKernelError(
            "Triton is not installed; it comes with torch built for CUDA"
        )
    from largeprompt.kernels.triton_decoding import TritonKernel

    return TritonKernel()


def installed(name: str) -> bool:
    """Return whether a package can be imported."""
    return importlib.util.find_spec(name) is not None
