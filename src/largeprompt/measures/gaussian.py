"""The law for which attention is affine in the query."""

import dataclasses
import math
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.measures.base import Measure


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Gaussian(Measure):
    r"""The normal law: $\Lambda(t) = m^\top t + \frac12 t^\top \Sigma t$.

    Tilting moves the mean to $m + \Sigma t$ and leaves the covariance alone
    (Boursier and Boyer (2026), Lemma 2.1). The covariance may be singular.

    Attributes:
        mean: The vector $m$.
        cov: The covariance $\Sigma$, symmetric and positive semidefinite up to
            rounding (relative tolerance: the square root of the machine epsilon).
    """

    mean: Float[Tensor, " d"]
    cov: Float[Tensor, "d d"]

    def __post_init__(self) -> None:
        """Check that mean and covariance are those of a normal law.

        Raises:
            ValueError: If shapes disagree, a number is not finite, or the covariance is
                not symmetric and positive semidefinite.
        """
        d = self.mean.shape[-1] if self.mean.ndim == 1 else 0
        if d == 0 or self.cov.shape != (d, d) or self.mean.dtype != self.cov.dtype:
            raise ValueError(
                "a Gaussian needs a mean [d] and a covariance [d, d] of one dtype; got "
                f"{self.mean.dtype} {tuple(self.mean.shape)} and "
                f"{self.cov.dtype} {tuple(self.cov.shape)}"
            )
        mean, cov = self.mean.detach(), self.cov.detach()
        if not (mean.isfinite().all() and cov.isfinite().all()):
            raise ValueError("mean and cov must be finite; got NaN or infinity")
        slack = math.sqrt(torch.finfo(cov.dtype).eps) * float(cov.abs().max())
        if float((cov - cov.mT).abs().max()) > slack:
            raise ValueError("cov must be symmetric; got an asymmetric matrix")
        lowest = float(torch.linalg.eigvalsh(cov)[0])
        if lowest < -slack:
            raise ValueError(
                "cov must be positive semidefinite; "
                f"got a matrix with the eigenvalue {lowest:g}"
            )

    @classmethod
    def unchecked(
        cls, mean: Float[Tensor, " d"], cov: Float[Tensor, "d d"]
    ) -> "Gaussian":
        """Return a normal law without checking its covariance.

        For covariances that are positive semidefinite by construction: rounding may
        leave nothing but rounding of a degenerate one, and `torch.func` transforms
        cannot branch on values.
        """
        gaussian = object.__new__(cls)
        object.__setattr__(gaussian, "mean", mean)
        object.__setattr__(gaussian, "cov", cov)
        return gaussian

    @property
    @override
    def dim(self) -> int:
        return self.mean.shape[-1]

    @override
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        return t @ self.mean + ((t @ self.cov) * t).sum(-1) / 2

    @override
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        return self.mean + t @ self.cov

    @override
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        return self.cov.expand(*t.shape[:-1], -1, -1)

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        variances, axes = torch.linalg.eigh(self.cov)
        standard = torch.randn(
            n, self.dim, generator=generator, dtype=axes.dtype, device=axes.device
        )
        return self.mean + (standard * variances.clamp(min=0).sqrt()) @ axes.mT
