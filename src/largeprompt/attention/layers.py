r"""Layers of attention as maps of the law of the tokens.

In a layer every token asks and every token answers. On a Gaussian law each head is
affine, so the law stays Gaussian through any number of layers: its mean and covariance
follow a recursion, exactly (docs/theory.md, section 16).
"""

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention.head import Head
from largeprompt.measures import Affine, Gaussian, Measure, pushforward


@final
@dataclasses.dataclass(frozen=True, eq=False)
class AttentionLayer:
    r"""The map $z \mapsto r z + \sum_h T_h[\mu](z)$ of the tokens of a law $\mu$.

    Attributes:
        heads: The heads $T_h$, from tokens to tokens; an output projection belongs
            into the value matrix.
        residual: $r$: 1 with a residual connection, 0 without.
    """

    heads: tuple[Head, ...]
    residual: float = 1.0

    def __post_init__(self) -> None:
        """Check that the heads map tokens of one dimension to such tokens."""
        if not self.heads:
            raise ValueError("heads must be at least one; got none")
        shapes = [
            (head.value.shape[0], head.value.shape[1], head.query.shape[1])
            for head in self.heads
        ]
        if len({size for shape in shapes for size in shape}) > 1:
            raise ValueError(
                "values, tokens and queries of a layer must be of one dimension; got "
                f"{shapes}"
            )

    @property
    def dim(self) -> int:
        """The dimension of the tokens."""
        return self.heads[0].value.shape[0]

    def output(
        self, measure: Measure, z: Float[Tensor, "*batch d"]
    ) -> Float[Tensor, "*batch d"]:
        """Return where the tokens `z` go among tokens of the law `measure`."""
        moved = self.residual * z
        for head in self.heads:
            moved = moved + head.output(measure, z)
        return moved

    def limit(self, gaussian: Gaussian) -> Affine:
        r"""Return $z \mapsto B z + b$, where tokens of a Gaussian law go.

        $B = r + \sum_h V_h G U_h$ and $b = \sum_h V_h m$ (Boursier and Boyer (2026),
        Lemma 2.1).
        """
        parts = [head.linear_limit(gaussian) for head in self.heads]
        weight = torch.stack([part.weight for part in parts]).sum(0)
        bias = torch.stack([part.bias for part in parts]).sum(0)
        eye = torch.eye(self.dim, dtype=weight.dtype, device=weight.device)
        return Affine(self.residual * eye + weight, bias)

    def image(self, gaussian: Gaussian) -> Gaussian:
        r"""Return the law $N(B m + b,\, B G B^\top)$ of the tokens after the layer."""
        image = pushforward(gaussian, self.limit(gaussian))
        assert isinstance(image, Gaussian), "an affine map keeps a law Gaussian"
        return image


def gaussian_laws(
    layers: Sequence[AttentionLayer], gaussian: Gaussian
) -> list[Gaussian]:
    """Return the law of the tokens before the first layer and after each.

    Exact in the limit of long prompts (Castin, Ablin, Carrillo and Peyré (2025) for
    continuous depth; docs/theory.md, equation (16.1)).
    """
    laws = [gaussian]
    for layer in layers:
        laws.append(layer.image(laws[-1]))
    return laws


def limit_paths(layers: Sequence[AttentionLayer], gaussian: Gaussian) -> list[Affine]:
    """Return where a token is before the first layer and after each, in the limit.

    Each is one affine map of the token it was at first.
    """
    eye = torch.eye(gaussian.dim, dtype=gaussian.cov.dtype, device=gaussian.cov.device)
    paths = [Affine.linear(eye)]
    laws = gaussian_laws(layers, gaussian)
    for layer, law in zip(layers, laws[:-1], strict=True):
        paths.append(layer.limit(law).after(paths[-1]))
    return paths
