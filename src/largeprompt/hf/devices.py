"""Where a model's layers go."""

import torch

from largeprompt.errors import DeviceError

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}


def check_placement(device_map: str | None) -> None:
    """Refuse a device that this machine does not have.

    Raises:
        DeviceError: CUDA was asked for and is not there, or MPS, which has no float64.
    """
    if device_map is None:
        return
    if device_map.startswith("cuda") and not torch.cuda.is_available():
        raise DeviceError(
            f"{device_map} was asked for, and PyTorch {torch.__version__} finds no "
            "CUDA device here; leave the device out to run on the CPU"
        )
    if device_map.startswith("mps"):
        raise DeviceError("mps computes no float64, which the statistics need")


def dtype_of(name: str) -> torch.dtype:
    """Return a precision by its name.

    Raises:
        ValueError: It is none of those that a model is audited in.
    """
    if name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}; got {name!r}")
    return DTYPES[name]
