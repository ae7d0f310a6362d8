r"""Trainable parameters of one head that answers an in-context regression.

A head reads a prompt through two numbers per token $\tilde x_i = (x_i, y_i)$ only: the
logit $\tilde x_i^\top U z$ and the value $v \cdot \tilde x_i$. A parametrisation is a
way to write $(U, v)$; its gradient is the chain rule applied to that of $(U, v)$.
"""

import abc
import dataclasses
import math
from typing import Self, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override


class Parameters(abc.ABC):
    """Tensors from which a head's $(U, v)$ is made; subclasses are final dataclasses.

    A gradient has the type of what it is the gradient of.
    """

    @abc.abstractmethod
    def merge(self, logit_factor: float) -> "Merged":
        """Return $(U, v)$, the factor of the logits folded into $U$."""

    @abc.abstractmethod
    def pull_back(self, gradient: "Merged", logit_factor: float) -> Self:
        """Return the gradient in these parameters, given the one in `merge`'s."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name."""
        return dict(vars(self))

    def flat(self) -> Float[Tensor, " p"]:
        """Return all entries in one vector, in the order of the fields."""
        return torch.cat([tensor.flatten() for tensor in self.tensors().values()])

    def unflat(self, vector: Float[Tensor, " p"]) -> Self:
        """Return parameters of these shapes from the entries in `vector`."""
        tensors = self.tensors()
        parts = vector.split([tensor.numel() for tensor in tensors.values()])
        return type(self)(
            *(p.view(t.shape) for p, t in zip(parts, tensors.values(), strict=True))
        )


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Merged(Parameters):
    r"""The two objects that matter, trained directly.

    Attributes:
        bilinear: $U$, so that a token's logit is $\tilde x^\top U z$.
        value: $v$, so that a token's value is $v \cdot \tilde x$.
    """

    bilinear: Float[Tensor, "e e"]
    value: Float[Tensor, " e"]

    def __post_init__(self) -> None:
        """Check the shapes.

        Raises:
            ValueError: They do not fit together.
        """
        width = self.value.shape[-1:]
        if self.value.ndim != 1 or self.bilinear.shape != (*width, *width):
            raise ValueError(
                "bilinear and value must have shapes (e, e) and (e,); got "
                f"{tuple(self.bilinear.shape)} and {tuple(self.value.shape)}"
            )

    @override
    def merge(self, logit_factor: float) -> "Merged":
        return Merged(logit_factor * self.bilinear, self.value)

    @override
    def pull_back(self, gradient: "Merged", logit_factor: float) -> "Merged":
        return Merged(logit_factor * gradient.bilinear, gradient.value)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Separate(Parameters):
    r"""The four matrices of the paper's code: $U = K^\top Q$ and $v = O V$.

    Attributes:
        key: $K$.
        query: $Q$.
        value: $V$.
        output: $O$, one row.
    """

    key: Float[Tensor, "k e"]
    query: Float[Tensor, "k e"]
    value: Float[Tensor, "o e"]
    output: Float[Tensor, "1 o"]

    def __post_init__(self) -> None:
        """Check the shapes.

        Raises:
            ValueError: They do not fit together.
        """
        width = self.value.shape[-1]
        if (
            self.key.ndim != 2
            or self.key.shape != self.query.shape
            or self.key.shape[1] != width
            or self.output.shape != (1, self.value.shape[0])
        ):
            raise ValueError(
                "key, query, value and output must have shapes (k, e), (k, e), (o, e) "
                "and (1, o); got "
                + ", ".join(str(tuple(t.shape)) for t in self.tensors().values())
            )

    @classmethod
    def draw(cls, dim: int, generator: torch.Generator) -> "Separate":
        r"""Draw square matrices for inputs in `dim`, as `torch.nn.Linear` does.

        Every entry is uniform on $\pm 1/\sqrt{d + 1}$; float64.
        """
        e = dim + 1
        shapes = ((e, e), (e, e), (e, e), (1, e))
        return cls(
            *(
                (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1)
                / math.sqrt(e)
                for shape in shapes
            )
        )

    @override
    def merge(self, logit_factor: float) -> Merged:
        return Merged(
            logit_factor * (self.key.mT @ self.query), (self.output @ self.value)[0]
        )

    @override
    def pull_back(self, gradient: Merged, logit_factor: float) -> "Separate":
        bilinear, row = logit_factor * gradient.bilinear, gradient.value[None, :]
        return Separate(
            key=self.query @ bilinear.mT,
            query=self.key @ bilinear,
            value=self.output.mT @ row,
            output=row @ self.value.mT,
        )


def merge_jacobian(parameters: Parameters, logit_factor: float) -> Float[Tensor, "m p"]:
    """Return the derivative of $(U, v)$ in the parameters, both as flat vectors."""
    merged = parameters.merge(logit_factor)
    units = torch.eye(merged.flat().numel(), dtype=torch.float64)
    rows = [parameters.pull_back(merged.unflat(e), logit_factor).flat() for e in units]
    return torch.stack(rows)
