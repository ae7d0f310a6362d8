"""Small layers of every awkward kind, for the tests of the decoding kernels."""

import dataclasses

import torch

from largeprompt.compress.compact import Atoms, Compact
from largeprompt.compress.indexed import Indexed
from largeprompt.compress.sets import LinearSets
from largeprompt.kernels import Tail

# query heads, key width, value width: no powers of two, and the usual ones
SHAPES = [(1, 16, 16), (3, 24, 20), (5, 7, 33), (8, 64, 64)]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
HEADS = 3
TOKENS = 300
KEYS = 90  # that an indexed step may read


def normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tilts(shape: tuple[int, int, int]) -> torch.Tensor:
    groups, width, _ = shape
    return normal(HEADS, groups, width, seed=1) * (2 / width**0.5)


def random_sets(shape: tuple[int, int, int], count: int, rank: int) -> LinearSets:
    """Sets whose tables bend, one of them empty, some met beyond their reach."""
    groups, width, value_width = shape
    base = normal(HEADS, groups, count, seed=2)
    base[:, :, 0] = -torch.inf
    table = torch.linspace(0, 1, 9).expand(HEADS, groups, count, 9)
    return LinearSets(
        base=base,
        key_mean=normal(HEADS, count, width, seed=3),
        value_mean=normal(HEADS, count, value_width, seed=4),
        directions=normal(HEADS, count, rank, width, seed=5),
        variances=normal(HEADS, count, rank, seed=6).square(),
        responses=normal(HEADS, count, value_width, rank, seed=7),
        gain=2 * table.square(),
        damping=1 - table / 2,
        reach=torch.linspace(0.5, 8, count).expand(HEADS, count),
    )


def compact(
    shape: tuple[int, int, int], dtype: torch.dtype, sets: LinearSets | None
) -> Compact:
    """Ragged atoms, those of the middle head absent, with an outlier channel."""
    _, width, value_width = shape
    key = normal(2 * TOKENS, width, seed=8)
    key[:, 0] += 30
    atoms = Atoms(
        key.to(dtype),
        normal(2 * TOKENS, value_width, seed=9).to(dtype),
        torch.tensor([0, 77, 77, 2 * TOKENS]),
    )
    return Compact(atoms, sets)


def tail(shape: tuple[int, int, int], dtype: torch.dtype) -> Tail:
    """Buffers of seven rows: some used, none, all; NaN where they are not."""
    _, width, value_width = shape
    key = normal(HEADS, 7, width, seed=10).to(dtype)
    value = normal(HEADS, 7, value_width, seed=11).to(dtype)
    key[0, 3:] = value[0, 3:] = torch.nan
    key[1] = value[1] = torch.nan
    return Tail(key, value, torch.tensor([3, 0, 7]))


def indexed(shape: tuple[int, int, int], dtype: torch.dtype) -> Indexed:
    """Clusters of uneven sizes, one empty; the middle head is all padding."""
    _, width, value_width = shape
    key = normal(HEADS, TOKENS, width, seed=12)
    key[..., 0] += 30
    value = normal(HEADS, TOKENS, value_width, seed=13)
    starts = torch.tensor(
        [
            [20, 20, 41, 100, 110, 187, 215, TOKENS],
            [0] * 8,
            [0, 0, 30, 37, 99, 180, 181, 250],
        ]
    )
    sizes = starts.diff(dim=1)
    sets = random_sets(shape, sizes.shape[1], 3)
    base = sizes.log()[:, None].expand_as(sets.base).contiguous()
    return Indexed(
        key.to(dtype),
        value.to(dtype),
        starts,
        dataclasses.replace(sets, base=base),
    )
