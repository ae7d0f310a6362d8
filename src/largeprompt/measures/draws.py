"""The two elementary draws that samplers are made of."""

import torch
from jaxtyping import Float
from torch import Tensor


def uniforms(
    like: Float[Tensor, " d"], n: int, generator: torch.Generator
) -> Float[Tensor, "n d"]:
    """Draw `n` rows of uniform numbers in [0, 1), in the width and dtype of `like`."""
    shape = (n, like.shape[0])
    return torch.rand(shape, generator=generator, dtype=like.dtype, device=like.device)


def unit_vectors(
    like: Float[Tensor, " d"], n: int, generator: torch.Generator
) -> Float[Tensor, "n d"]:
    """Draw `n` uniform directions, in the dimension and dtype of `like`."""
    shape = (n, like.shape[0])
    normals = torch.randn(
        shape, generator=generator, dtype=like.dtype, device=like.device
    )
    return normals / normals.norm(dim=-1, keepdim=True)
