r"""Randomised quasi-random points carried to the standard normal law."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

RESOLUTION = 2**-30  # of the generator of Sobol points


def normal_points(
    count: int, dim: int, generator: torch.Generator, replicates: int = 8
) -> Float[Tensor, "replicates count dim"]:
    r"""Draw scrambled Sobol points as standard normal vectors; float64.

    The average of a function over one replicate is unbiased, with an error near
    $1/\text{count}$ for smooth functions; the spread over replicates measures it.

    Args:
        count: How many points a replicate holds, a power of two.
        dim: The dimension of a point.
        generator: The source of the scramblings.
        replicates: How many independent scramblings.

    Raises:
        ValueError: `count` is no power of two, or a number is below 1.
    """
    if min(count, dim, replicates) < 1 or count & (count - 1):
        raise ValueError(
            "count must be a power of two, dim and replicates at least 1; "
            f"got {count}, {dim} and {replicates}"
        )
    seeds = torch.randint(
        2**62, (replicates,), generator=generator, device=generator.device
    )
    engines = (
        torch.quasirandom.SobolEngine(dim, scramble=True, seed=seed)
        for seed in seeds.tolist()
    )
    uniform = torch.stack(
        [engine.draw(count, dtype=torch.float64) for engine in engines]
    )
    # the middle of a point's cell is never 0 or 1
    return math.sqrt(2) * torch.erfinv(2 * (uniform + RESOLUTION / 2) - 1)
