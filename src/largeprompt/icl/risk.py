r"""Population risks as functions of the merged parameters of one head, with gradients.

A head that reads tokens $(x_i, y_i)$ and a query $(x_q, 0)$ enters its risk through
$U = K^\top Q$ (all scales folded in) and its value row $v$ alone. These risks are what
flows follow: plain numpy, closed-form gradients, no graph.
"""

import abc

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Risk(abc.ABC):
    """The mean square error of a head, target noise included, and its gradient.

    Parameters come merged in one vector, see `merge`.
    """

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """$d$, the dimension of an input; tokens have one coordinate more."""

    @abc.abstractmethod
    def value(self, merged: Array) -> float:
        """Return the risk."""

    @abc.abstractmethod
    def gradient(self, merged: Array) -> Array:
        """Return its gradient."""


def merge(bilinear: Array, value: Array) -> Array:
    r"""Return $(U, v)$ as one vector: the rows of $U$, then $v$."""
    return np.concatenate([bilinear.ravel(), value])


def unmerge(merged: Array, dim: int) -> tuple[Array, Array]:
    """Return $U$, of shape (d + 1, d + 1), and $v$; the inverse of `merge`."""
    size = dim + 1
    return merged[: size * size].reshape(size, size), merged[size * size :]
