"""Products: tokens whose blocks are independent."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.measures.base import Measure, on_domain


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Product(Measure):
    r"""The law of independent blocks: $\Lambda(t) = \sum_j \Lambda_j(t_j)$.

    Attributes:
        factors: The laws of the blocks, in the order of the coordinates.
    """

    factors: tuple[Measure, ...]

    def __post_init__(self) -> None:
        """Check that there is a factor."""
        if not self.factors:
            raise ValueError("a product needs at least one factor; got none")

    @property
    @override
    def dim(self) -> int:
        return sum(self.block_sizes)

    @property
    def block_sizes(self) -> list[int]:
        """The dimensions of the factors."""
        return [factor.dim for factor in self.factors]

    def blocks(self, t: Float[Tensor, "*batch d"]) -> list[tuple[Measure, Tensor]]:
        """Return each factor beside its block of `t`."""
        return list(zip(self.factors, t.split(self.block_sizes, dim=-1), strict=True))

    @override
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        cumulants = [factor.log_mgf(block) for factor, block in self.blocks(t)]
        return torch.stack(cumulants).sum(0)

    @override
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return on_domain(self, t, self._mean_inside)

    @override
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        return on_domain(self, t, self._cov_inside)

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        draws = [factor.sample(n, generator) for factor in self.factors]
        return torch.cat(draws, dim=-1)

    def _mean_inside(self, t: Tensor) -> Tensor:
        means = [factor.tilted_mean(block) for factor, block in self.blocks(t)]
        return torch.cat(means, dim=-1)

    def _cov_inside(self, t: Tensor) -> Tensor:
        rows, before = [], 0
        for factor, block in self.blocks(t):
            after = self.dim - before - factor.dim
            cov = factor.tilted_cov(block)
            rows.append(torch.nn.functional.pad(cov, (before, after)))
            before += factor.dim
        return torch.cat(rows, dim=-2)
