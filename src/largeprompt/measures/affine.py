"""Affine maps: what attention becomes on Gaussian tokens."""

import dataclasses
from typing import final

from jaxtyping import Float
from torch import Tensor


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Affine:
    r"""The map $x \mapsto W x + b$ from $\mathbb{R}^d$ to $\mathbb{R}^e$.

    Attributes:
        weight: The matrix $W$.
        bias: The vector $b$.
    """

    weight: Float[Tensor, "e d"]
    bias: Float[Tensor, " e"]

    def __post_init__(self) -> None:
        """Check that the matrix and the vector fit together."""
        if self.weight.ndim != 2 or self.bias.shape != self.weight.shape[:1]:
            raise ValueError(
                "an affine map needs a matrix [e, d] and a vector [e]; got shapes "
                f"{tuple(self.weight.shape)} and {tuple(self.bias.shape)}"
            )

    @classmethod
    def linear(cls, weight: Float[Tensor, "e d"]) -> "Affine":
        r"""Return the linear map $x \mapsto W x$."""
        return cls(weight, weight.new_zeros(weight.shape[:1]))

    def __call__(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch e"]:
        """Return the image of each `x`."""
        return x @ self.weight.mT + self.bias

    def after(self, first: "Affine") -> "Affine":
        """Return the map that applies `first` and then this one."""
        return Affine(self.weight @ first.weight, self(first.bias))
