"""The weight of attention by position, and by distance, in bands that double."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Edges = NDArray[np.int64]


def band_edges(n: int) -> Edges:
    """Return 0, 1, 2, 3, 4, 8, 16, ... up to `n`: where bands of tokens begin."""
    edges = [0, 1, 2, 3, 4]
    while edges[-1] < n:
        edges.append(2 * edges[-1])
    return np.array([*(edge for edge in edges if edge < n), n])


def band_weights(weights: Array, first: int, edges: Edges) -> tuple[Array, Array]:
    """Return the weight on each band, of shape (h, bands), and its share of tokens.

    Args:
        weights: Weights of the tokens `first`, `first` + 1, ..., of shape (h, n).
        first: The place of the first of them.
        edges: Where the bands begin, and where the last one ends.
    """
    n = weights.shape[-1]
    inside = np.clip(edges - first, 0, n)
    sums = np.concatenate([np.zeros((len(weights), 1)), weights.cumsum(-1)], -1)
    return np.diff(sums[:, inside]), np.diff(inside) / n
