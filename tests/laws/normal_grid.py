"""Expectations over a few independent normal variables, by a plain tensor grid.

The trapezoid rule converges so fast for normal densities that a step of 0.25 is exact
to rounding; it shares nothing with the Laplace integrals of the library.
"""

import numpy as np

REACH = 9.0


def normal_grid(count: int, step: float = 0.25):
    """Points [..., count] of a grid and their probabilities."""
    axis = step * np.arange(-REACH / step, REACH / step + 1)
    points = np.stack(np.meshgrid(*[axis] * count, indexing="ij"), axis=-1)
    density = np.exp(-(points**2).sum(-1) / 2)
    return points.reshape(-1, count), (density / density.sum()).ravel()


def softmax(logits):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)
