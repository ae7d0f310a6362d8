"""Mixtures: clusters of tokens."""

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.measures import categorical
from largeprompt.measures.base import Measure, on_domain


@final
@dataclasses.dataclass(frozen=True, eq=False, init=False)
class Mixture(Measure):
    r"""The law $\sum_k w_k \mu_k$: $\Lambda(t) = \log \sum_k w_k e^{\Lambda_k(t)}$.

    The tilted law is the mixture of the tilted components, with weights
    $\mathrm{softmax}(\log w_k + \Lambda_k(t))$: attention between clusters, then inside
    them.

    Attributes:
        components: The laws $\mu_k$, all of one dimension.
        log_weights: Logarithms of their probabilities.
    """

    components: tuple[Measure, ...]
    log_weights: Float[Tensor, " c"]

    def __init__(
        self, components: tuple[Measure, ...], log_weights: Float[Tensor, " c"]
    ) -> None:
        r"""Check the components and normalise the weights.

        Args:
            components: The laws $\mu_k$.
            log_weights: Logarithms of weights up to a common constant, all finite:
                leave out a component of weight zero.

        Raises:
            ValueError: If there is no component, if dimensions or lengths disagree, or
                if a log-weight is not finite.
        """
        dims = [component.dim for component in components]
        if len(set(dims)) != 1:
            raise ValueError(
                "a mixture needs at least one component and a single dimension; "
                f"got the dimensions {dims}"
            )
        if log_weights.shape != (len(components),):
            raise ValueError(
                f"log_weights must hold one number a component, {len(components)}; "
                f"got shape {tuple(log_weights.shape)}"
            )
        if not log_weights.isfinite().all():
            raise ValueError(f"log_weights must be finite; got {log_weights.tolist()}")
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "log_weights", categorical.normalised(log_weights))

    @property
    @override
    def dim(self) -> int:
        return self.components[0].dim

    @override
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        masses = self._log_masses(t)
        inside = (masses != math.inf).all(-1)
        finite = torch.where(inside.unsqueeze(-1), masses, 0).logsumexp(-1)
        return torch.where(inside, finite, math.inf)

    @override
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return on_domain(self, t, self._mean_inside)

    @override
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        return on_domain(self, t, self._cov_inside)

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        chosen = categorical.draw(self.log_weights, n, generator)
        sizes = torch.bincount(chosen, minlength=len(self.components)).tolist()
        draws = [
            component.sample(size, generator)
            for component, size in zip(self.components, sizes, strict=True)
        ]
        return torch.cat(draws)[chosen.argsort(stable=True).argsort()]

    def _log_masses(self, t: Tensor) -> Tensor:
        r"""Return $\log w_k + \Lambda_k(t)$, the components last."""
        cumulants = [component.log_mgf(t) for component in self.components]
        return torch.stack(cumulants, dim=-1) + self.log_weights

    def _mean_inside(self, t: Tensor) -> Tensor:
        weights = self._log_masses(t).softmax(-1).unsqueeze(-1)
        means = [component.tilted_mean(t) for component in self.components]
        return (weights * torch.stack(means, dim=-2)).sum(-2)

    def _cov_inside(self, t: Tensor) -> Tensor:
        weights = self._log_masses(t).softmax(-1)
        means = [component.tilted_mean(t) for component in self.components]
        covs = [component.tilted_cov(t) for component in self.components]
        means = torch.stack(means, dim=-2)  # *batch c d
        mean = (weights.unsqueeze(-1) * means).sum(-2, keepdim=True)
        centred = means - mean
        between = (weights.unsqueeze(-1) * centred).mT @ centred
        within = (weights[..., None, None] * torch.stack(covs, dim=-3)).sum(-3)
        return within + between
