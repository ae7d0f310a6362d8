"""Heads and laws of small odd sizes that several tests share."""

import torch

from largeprompt.attention import Head
from largeprompt.measures import Gaussian


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_head(seed: int, d: int, *, scale: float = 0.5, v: int = 2) -> Head:
    g = generator(seed)
    key, query, value = (
        torch.randn(rows, d, generator=g, dtype=torch.float64) for rows in (3, 3, v)
    )
    return Head(key, query, value, scale)


def random_gaussian(seed: int, d: int) -> Gaussian:
    g = generator(seed)
    root = torch.randn(d, d, generator=g, dtype=torch.float64)
    mean = torch.randn(d, generator=g, dtype=torch.float64)
    return Gaussian(mean, root @ root.mT / d)


def random_vector(seed: int, d: int) -> torch.Tensor:
    return torch.randn(d, generator=generator(seed), dtype=torch.float64)
