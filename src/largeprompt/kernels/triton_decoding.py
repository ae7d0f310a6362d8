"""Decoding on a GPU: Triton reads the rows, torch answers for the sets.

Shapes depend on the layer and the budget alone, never on what a query opens, and
nothing waits for the host.
"""

import dataclasses
from typing import final

import torch
import triton
import triton.language as tl
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from typing_extensions import override

from largeprompt.audit.limits import Answer
from largeprompt.compress.compact import Compact
from largeprompt.compress.indexed import Indexed
from largeprompt.compress.sets import merge
from largeprompt.kernels.base import Kernel
from largeprompt.kernels.reference import joined
from largeprompt.kernels.tail import Tail
from largeprompt.kernels.triton_rows import answer_listed


@final
@dataclasses.dataclass(frozen=True)
class TritonKernel(Kernel):
    """Keys and values in float32, bfloat16 or float16 on a CUDA device."""

    @override
    def decode(
        self, tilt: Float[Tensor, "b g k"], compact: Compact, tail: Tail | None = None
    ) -> Answer:
        tilt = tilt.float()
        atoms = compact.atoms
        counts = atoms.starts.diff()
        room = torch.arange(atoms.key.shape[0], device=tilt.device)
        listed = atoms.starts[:-1, None] + room
        parts = [answer_listed(tilt, atoms.key, atoms.value, listed, counts)]
        if compact.sets is not None:
            sets = compact.sets.answer(tilt[:, :, None])
            parts.append(merge(Answer(sets.log_mass[:, :, 0], sets.output[:, :, 0])))
        return joined(*parts, *later(tilt, tail))

    @override
    def decode_indexed(
        self,
        tilt: Float[Tensor, "b g k"],
        indexed: Indexed,
        keys: int,
        tail: Tail | None = None,
    ) -> Answer:
        tilt = tilt.float()
        key, value = indexed.key.flatten(0, 1), indexed.value.flatten(0, 1)
        heads, held = indexed.key.shape[:2]
        origin = held * torch.arange(heads, device=tilt.device)[:, None]
        always = indexed.starts[:, 0]
        rows = origin + torch.arange(held, device=tilt.device)
        exact = joined(
            answer_listed(tilt, key, value, rows, always), *later(tilt, tail)
        )
        sets = indexed.sets.answer(tilt[:, :, None])
        predicted = sets.log_mass[:, :, 0]
        density = indexed.densities(predicted, exact.log_mass)
        opened = open_clusters(density, indexed.sizes, keys - always)
        listed, counts = list_rows(indexed, opened, keys)
        closed = predicted.masked_fill(opened[:, None], -torch.inf)
        return joined(
            exact,
            answer_listed(tilt, key, value, origin + listed, counts),
            merge(Answer(closed, sets.output[:, :, 0])),
        )


def later(tilt: Float[Tensor, "b g k"], tail: Tail | None) -> list[Answer]:
    """Answer for the later tokens, if any."""
    if tail is None:
        return []
    heads, room = tail.key.shape[:2]
    rows = torch.arange(heads * room, device=tilt.device).view(heads, room)
    key, value = tail.key.flatten(0, 1), tail.value.flatten(0, 1)
    return [answer_listed(tilt, key, value, rows, tail.lengths)]


@triton.jit
def take_what_fits(ranking, sizes, room, opened, clusters):
    """Open one head's clusters in the order of `ranking` while they fit."""
    head = tl.program_id(0)
    left = tl.load(room + head)
    for place in range(clusters):
        cluster = tl.load(ranking + head * clusters + place)
        size = tl.load(sizes + head * clusters + cluster)
        fits = (size > 0) & (size <= left)
        tl.store(opened + head * clusters + cluster, fits)
        left = tl.where(fits, left - size, left)


def open_clusters(
    density: Float[Tensor, "b c"],
    sizes: Int64[Tensor, "b c"],
    room: Int64[Tensor, " b"],
) -> Bool[Tensor, "b c"]:
    """Return what `Indexed.choose` returns, without the host."""
    ranking = density.sort(dim=-1, descending=True, stable=True).indices
    opened = torch.zeros_like(sizes, dtype=torch.int8)
    take_what_fits[(len(sizes),)](
        ranking, sizes.contiguous(), room.contiguous(), opened, sizes.shape[1]
    )
    return opened.bool()


def list_rows(
    indexed: Indexed, opened: Bool[Tensor, "b c"], keys: int
) -> tuple[Int64[Tensor, "b m"], Int64[Tensor, " b"]]:
    """List the rows of the opened clusters in `keys` places, and count them."""
    sizes = indexed.sizes * opened
    ends = sizes.cumsum(1)
    places = torch.arange(keys, device=ends.device).expand(len(ends), -1)
    cluster = torch.searchsorted(ends, places.contiguous(), right=True)
    cluster = cluster.clamp_max(sizes.shape[1] - 1)
    first = indexed.starts.gather(1, cluster) - (ends - sizes).gather(1, cluster)
    return first + places, ends[:, -1]
