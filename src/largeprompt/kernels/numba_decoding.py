"""Decoding on the CPU with numba, on one thread."""

import dataclasses
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from largeprompt.audit.limits import Answer
from largeprompt.compress.compact import Compact
from largeprompt.compress.indexed import Indexed
from largeprompt.compress.sets import LinearSets
from largeprompt.kernels.base import Kernel
from largeprompt.kernels.numba_arithmetic import BFLOAT16, FLOAT16, FLOAT32
from largeprompt.kernels.numba_sets import Sets
from largeprompt.kernels.numba_steps import Later, Tokens, compact_step, indexed_step
from largeprompt.kernels.tail import Tail

KINDS = {torch.float32: FLOAT32, torch.bfloat16: BFLOAT16, torch.float16: FLOAT16}


@final
@dataclasses.dataclass(frozen=True)
class NumbaKernel(Kernel):
    """Keys and values in float32, bfloat16 or float16, read in place.

    The first call for a kind of keys compiles for seconds; numba keeps the result on
    disk where it can. A float16 infinity is read as 65,536.
    """

    @override
    def decode(
        self, tilt: Float[Tensor, "b g k"], compact: Compact, tail: Tail | None = None
    ) -> Answer:
        atoms = compact.atoms
        tokens = Tokens(
            rows(atoms.key), rows(atoms.value), kind(atoms.key), rows(atoms.starts)
        )
        sets = compact.sets
        if sets is None:
            sets = no_sets(tilt, atoms.value.shape[-1])
        fields, by_direction = set_arrays(sets)
        later = later_tokens(tail, atoms.key, atoms.value, len(tilt))
        answer = empty_answer(tilt, atoms.value.shape[-1])
        compact_step(
            rows(tilt.float()), tokens, later, fields, by_direction, *arrays(answer)
        )
        return answer

    @override
    def decode_indexed(
        self,
        tilt: Float[Tensor, "b g k"],
        indexed: Indexed,
        keys: int,
        tail: Tail | None = None,
    ) -> Answer:
        return self.decode_and_show(tilt, indexed, keys, tail)[0]

    def decode_and_show(
        self,
        tilt: Float[Tensor, "b g k"],
        indexed: Indexed,
        keys: int,
        tail: Tail | None = None,
    ) -> tuple[Answer, Bool[Tensor, "b c"]]:
        """Decode, and return which clusters were opened too."""
        key, value = indexed.key.flatten(0, 1), indexed.value.flatten(0, 1)
        tokens = Tokens(rows(key), rows(value), kind(key), rows(indexed.starts))
        fields, by_direction = set_arrays(indexed.sets)
        later = later_tokens(tail, key, value, len(tilt))
        answer = empty_answer(tilt, value.shape[-1])
        opened = torch.zeros(fields.variances.shape[:2], dtype=torch.bool)
        indexed_step(
            rows(tilt.float()),
            tokens,
            later,
            fields,
            by_direction,
            keys,
            *arrays(answer),
            opened.numpy(),
        )
        return answer, opened


def kind(tensor: Tensor) -> int:
    """Return how numba reads rows of this dtype.

    Raises:
        ValueError: It does not.
    """
    if tensor.dtype not in KINDS:
        raise ValueError(
            f"keys and values must be float32, bfloat16 or float16; got {tensor.dtype}"
        )
    return KINDS[tensor.dtype]


def rows(tensor: Tensor) -> Any:
    """Return a C-contiguous array: half precision as its bits."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.view(torch.uint16)
    return tensor.numpy()


def later_tokens(tail: Tail | None, key: Tensor, value: Tensor, heads: int) -> Later:
    """Return the tail's arrays, or empty ones of the prompt's dtype.

    Raises:
        ValueError: Keys, values and the tail differ in dtype.
    """
    if tail is None:
        lengths = np.zeros(heads, np.int64)
        return Later(rows(key[:0]), rows(value[:0]), lengths)
    found = {key.dtype, value.dtype, tail.key.dtype, tail.value.dtype}
    if len(found) > 1:
        raise ValueError(f"keys and values must share one dtype; got {found}")
    key, value = tail.key.flatten(0, 1), tail.value.flatten(0, 1)
    return Later(rows(key), rows(value), rows(tail.lengths))


def set_arrays(sets: LinearSets) -> tuple[Sets, bool]:
    """Return the sets' arrays and whether a direction's response is contiguous."""
    by_direction = sets.responses.mT.is_contiguous()
    responses = sets.responses.mT if by_direction else sets.responses
    fields = {
        field.name: rows(getattr(sets, field.name))
        for field in dataclasses.fields(sets)
        if field.name != "responses"
    }
    return Sets(responses=rows(responses), **fields), by_direction


def no_sets(tilt: Float[Tensor, "b g k"], width: int) -> LinearSets:
    """Return zero sets for each KV head."""
    heads, groups, key_width = tilt.shape
    shapes = {
        "base": (heads, groups, 0),
        "key_mean": (heads, 0, key_width),
        "value_mean": (heads, 0, width),
        "directions": (heads, 0, 0, key_width),
        "variances": (heads, 0, 0),
        "responses": (heads, 0, width, 0),
        "gain": (heads, groups, 0, 2),
        "damping": (heads, groups, 0, 2),
        "reach": (heads, 0),
    }
    return LinearSets(**{name: torch.empty(shape) for name, shape in shapes.items()})


def empty_answer(tilt: Float[Tensor, "b g k"], width: int) -> Answer:
    """Return room for an answer."""
    heads, groups = tilt.shape[:2]
    return Answer(torch.empty(heads, groups), torch.zeros(heads, groups, width))


def arrays(answer: Answer) -> tuple[Any, Any]:
    """Return an answer's memory as arrays."""
    return answer.log_mass.numpy(), answer.output.numpy()
