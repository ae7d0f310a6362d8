r"""What a head and its gradient need of a prompt: logits, values, a few weighted sums.

The prediction of a head with tilt $u = Uz$ and value row $v$, and its gradient, are
functions of the logits $s_i = u \cdot \tilde x_i$, the values $t_i = v \cdot \tilde
x_i$ and sums $\sum_i c_i \tilde x_i$ whose coefficients depend on $(s, t)$ alone. With
the tokens in hand the sums are matrix products. For Gaussian tokens they can be drawn
instead: given $(s, t)$ the rest of a token is an independent normal vector, so that
any number of sums is jointly normal with the Gram matrix of the coefficients as
covariance. That is no approximation: logits, values and sums have exactly the joint law
they have with all tokens drawn (docs/theory.md, section 12).
"""

import abc
import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override


class TokenSums(abc.ABC):
    """A batch of prompts seen through one tilt and one value row.

    Attributes:
        logits: $s_i$.
        values: $t_i$.
    """

    logits: Float[Tensor, "b n"]
    values: Float[Tensor, "b n"]

    @abc.abstractmethod
    def sums(self, coefficients: Float[Tensor, "b c n"]) -> Float[Tensor, "b c e"]:
        r"""Return $\sum_i c_i \tilde x_i$ for each row of coefficients.

        The coefficients may depend on the logits and the values only, and one call
        takes all that are wanted: a second call may draw again.
        """


@final
@dataclasses.dataclass(frozen=True, eq=False)
class ShownTokens(TokenSums):
    r"""Prompts whose tokens $F g_i$ are known, though never formed.

    Attributes:
        root: $F$.
        coordinates: $g_i$, a column each.
        logits: $s_i$.
        values: $t_i$.
    """

    root: Float[Tensor, "b e e"]
    coordinates: Float[Tensor, "b e n"]
    logits: Float[Tensor, "b n"]
    values: Float[Tensor, "b n"]

    @override
    def sums(self, coefficients: Float[Tensor, "b c n"]) -> Float[Tensor, "b c e"]:
        return (coefficients @ self.coordinates.mT).double() @ self.root.mT


@final
@dataclasses.dataclass(frozen=True, eq=False)
class ProjectedTokens(TokenSums):
    r"""Prompts of Gaussian tokens $F g_i$ of which two projections were drawn.

    Attributes:
        root: $F$, so that $F F^\top$ is the covariance of a prompt's tokens.
        frame: Orthonormal columns spanning $F^\top u$ and $F^\top v$.
        coordinates: The standard normal coordinates of the $g_i$ in that frame.
        logits: $s_i$, a combination of the coordinates.
        values: $t_i$, another.
        generator: The source of what `sums` draws.
    """

    root: Float[Tensor, "b e e"]
    frame: Float[Tensor, "b e 2"]
    coordinates: Float[Tensor, "b 2 n"]
    logits: Float[Tensor, "b n"]
    values: Float[Tensor, "b n"]
    generator: torch.Generator

    @override
    def sums(self, coefficients: Float[Tensor, "b c n"]) -> Float[Tensor, "b c e"]:
        gram = (coefficients @ coefficients.mT).double()
        spectrum, basis = torch.linalg.eigh(gram)
        gram_root = basis * spectrum.clamp(min=0).sqrt().unsqueeze(-2)
        shape = (*coefficients.shape[:2], self.root.shape[-1])
        normals = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        rest = gram_root @ normals
        rest = rest - rest @ self.frame @ self.frame.mT  # the frame's part is known
        seen = (coefficients @ self.coordinates.mT).double() @ self.frame.mT
        return (seen + rest) @ self.root.mT


@final
@dataclasses.dataclass(frozen=True, eq=False)
class WithQuery(TokenSums):
    """Prompts with one more token, the query itself."""

    prompt: TokenSums
    query: Float[Tensor, "b e"]
    logits: Float[Tensor, "b n+1"]
    values: Float[Tensor, "b n+1"]

    @override
    def sums(self, coefficients: Float[Tensor, "b c n+1"]) -> Float[Tensor, "b c e"]:
        rest = self.prompt.sums(coefficients[..., :-1])
        return rest + coefficients[..., -1:] * self.query.unsqueeze(-2)


def show(
    root: Float[Tensor, "b e e"],
    coordinates: Float[Tensor, "b e n"],
    tilt: Float[Tensor, "b e"],
    value: Float[Tensor, " e"],
) -> ShownTokens:
    """Return prompts of known tokens $F g_i$, seen through a tilt and a value row."""
    pair = torch.stack([tilt, value.expand_as(tilt)], dim=1) @ root  # b 2 e
    logits, values = (pair.to(coordinates.dtype) @ coordinates).unbind(1)
    return ShownTokens(root, coordinates, logits, values)


def project(
    root: Float[Tensor, "b e e"],
    n: int,
    tilt: Float[Tensor, "b e"],
    value: Float[Tensor, " e"],
    generator: torch.Generator,
    dtype: torch.dtype,
) -> ProjectedTokens:
    r"""Draw two projections of each of `n` Gaussian tokens instead of the tokens.

    Args:
        root: $F$ of every prompt, $F F^\top$ the covariance of its tokens.
        n: The prompt length.
        tilt: $u$ of every prompt.
        value: $v$.
        generator: The source of the draws.
        dtype: Of what there is one of per token; the rest is float64.
    """
    pair = torch.stack([tilt, value.expand_as(tilt)], dim=-1)
    frame, mixing = torch.linalg.qr(root.mT @ pair)  # b e 2, b 2 2
    shape = (root.shape[0], 2, n)
    coordinates = torch.randn(shape, generator=generator, dtype=dtype)
    logits, values = (mixing.mT.to(dtype) @ coordinates).unbind(1)
    return ProjectedTokens(root, frame, coordinates, logits, values, generator)


def append_query(
    prompt: TokenSums,
    query: Float[Tensor, "b e"],
    tilt: Float[Tensor, "b e"],
    value: Float[Tensor, " e"],
) -> WithQuery:
    """Return prompts that end with their query token, seen in the same way."""
    dtype = prompt.logits.dtype
    logit = (query * tilt).sum(-1, keepdim=True).to(dtype)
    logits = torch.cat([prompt.logits, logit], dim=-1)
    values = torch.cat([prompt.values, (query @ value)[:, None].to(dtype)], dim=-1)
    return WithQuery(prompt, query, logits, values)
