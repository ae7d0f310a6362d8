"""Probabilities of finitely many things, kept as logarithms."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor


def normalised(log_weights: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Return the logarithms of weights scaled to sum to one.

    Raises:
        ValueError: If a logarithm is NaN or plus infinity, or if no weight is positive.
    """
    if log_weights.isnan().any() or log_weights.isposinf().any():
        raise ValueError(
            "log_weights must be finite, or minus infinity for a weight of zero; "
            "got NaN or plus infinity"
        )
    if log_weights.isneginf().all():
        raise ValueError("a probability measure needs a positive weight; got none")
    return log_weights.log_softmax(-1)


def uniform(n: int, like: Tensor) -> Float[Tensor, " n"]:
    """Return the logarithms of `n` equal probabilities, in the dtype of `like`."""
    return like.new_full((n,), -math.log(n))


def draw(
    log_weights: Float[Tensor, " n"], draws: int, generator: torch.Generator
) -> Int[Tensor, " draws"]:
    """Draw indices with the given log-probabilities by inverting their CDF.

    Weights of zero are never drawn. Any number of categories is allowed.
    """
    cumulative = log_weights.detach().double().exp().cumsum(-1)
    uniforms = torch.rand(
        draws, generator=generator, dtype=torch.float64, device=cumulative.device
    )
    return torch.searchsorted(cumulative, uniforms * cumulative[-1], right=True)
