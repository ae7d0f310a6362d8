"""Sequences of Gaussian tokens that are not independent."""

import abc
import dataclasses
from collections.abc import Iterator
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.measures.gaussian import Gaussian

NEGLIGIBLE = 1e-17  # of an autocovariance, relative to the covariance
ROUNDING = 1e-9  # of a spectral density


class GaussianSequence(abc.ABC):
    r"""A stationary Gaussian sequence $(x_i)$ of tokens.

    Each token has the law `marginal`; tokens $k$ apart have the autocovariance
    $\Gamma_k = \mathrm{Cov}(x_0, x_k)$, with $\Gamma_{-k} = \Gamma_k^\top$.
    """

    @property
    @abc.abstractmethod
    def marginal(self) -> Gaussian:
        """The law of one token."""

    @abc.abstractmethod
    def autocovariances(self) -> Iterator[Float[Tensor, "d d"]]:
        r"""Yield $\Gamma_0, \Gamma_1, \dots$, as many as are not negligible."""

    @abc.abstractmethod
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        """Draw `n` consecutive tokens; draws carry no gradient."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Autoregression(GaussianSequence):
    r"""The vector autoregression $x_{i+1} - m = A (x_i - m) + \varepsilon_i$.

    Stationary with marginal $N(m, G)$: the innovations have the covariance
    $G - A G A^\top$, and $\Gamma_k = G (A^\top)^k$.

    Attributes:
        law: The marginal $N(m, G)$.
        transition: The matrix $A$, of spectral radius below one.
    """

    law: Gaussian
    transition: Float[Tensor, "d d"]

    def __post_init__(self) -> None:
        """Check that the sequence is stationary and forgets its past.

        Raises:
            ValueError: If shapes disagree, the spectral radius of the transition is not
                below one, or no innovation makes this marginal stationary.
        """
        if self.transition.shape != self.law.cov.shape:
            raise ValueError(
                f"transition must have the shape of the covariance; got "
                f"{tuple(self.transition.shape)} and {tuple(self.law.cov.shape)}"
            )
        radius = float(torch.linalg.eigvals(self.transition).abs().max())
        if not radius < 1:
            raise ValueError(
                f"transition must have a spectral radius below 1; got {radius:g}"
            )
        lowest = float(torch.linalg.eigvalsh(self._innovation())[0])
        if lowest < -ROUNDING * float(self.law.cov.abs().max()):
            raise ValueError(
                "G - A G A' must be positive semidefinite; "
                f"got a matrix with the eigenvalue {lowest:g}"
            )

    @classmethod
    def isotropic(cls, law: Gaussian, correlation: float) -> "Autoregression":
        r"""Return the sequence with $\Gamma_k = \rho^k G$.

        Args:
            law: The marginal.
            correlation: $\rho$, strictly between $-1$ and 1.
        """
        eye = torch.eye(law.dim, dtype=law.cov.dtype, device=law.cov.device)
        return cls(law, correlation * eye)

    @property
    @override
    def marginal(self) -> Gaussian:
        return self.law

    @override
    def autocovariances(self) -> Iterator[Float[Tensor, "d d"]]:
        current = self.law.cov
        floor = NEGLIGIBLE * float(current.norm())
        while True:
            yield current
            current = current @ self.transition.mT
            if float(current.norm()) <= floor:
                return

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        zero = torch.zeros_like(self.law.mean)
        start = Gaussian.unchecked(zero, self.law.cov).sample(1, generator)
        noise = Gaussian.unchecked(zero, self._innovation()).sample(n - 1, generator)
        tokens = torch.cat([start, noise])
        # x_i = sum_j A^j e_{i-j} by doubling: after each turn, twice as many terms
        power, reach = self.transition, 1
        while reach < n:
            tokens[reach:] = tokens[reach:] + tokens[:-reach] @ power.mT
            power, reach = power @ power, 2 * reach
        return self.law.mean + tokens

    def _innovation(self) -> Tensor:
        cov = self.law.cov - self.transition @ self.law.cov @ self.transition.mT
        return (cov + cov.mT) / 2


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Autocorrelated(GaussianSequence):
    r"""Any finite autocorrelation: $\Gamma_k = \rho_k G$, and zero beyond the last.

    Attributes:
        law: The marginal $N(m, G)$.
        autocorrelation: $\rho_1, \rho_2, \dots$; may be empty.
    """

    law: Gaussian
    autocorrelation: Float[Tensor, " lags"]

    def __post_init__(self) -> None:
        """Check that a stationary sequence has this autocorrelation.

        Raises:
            ValueError: If a correlation is not strictly between -1 and 1, or the
                spectral density is negative somewhere.
        """
        if self.autocorrelation.ndim != 1:
            raise ValueError(
                "autocorrelation must be a vector; "
                f"got shape {tuple(self.autocorrelation.shape)}"
            )
        outside = ~(self.autocorrelation.abs() < 1)
        if outside.any():
            raise ValueError(
                "autocorrelations must be strictly between -1 and 1; "
                f"got {float(self.autocorrelation[outside][0])}"
            )
        lowest = float(self._spectral_density(4 * len(self.autocorrelation) + 4).min())
        if lowest < -ROUNDING * (1 + 2 * float(self.autocorrelation.abs().sum())):
            raise ValueError(
                "an autocorrelation has a spectral density of at least 0; "
                f"got {lowest:g}"
            )

    @property
    @override
    def marginal(self) -> Gaussian:
        return self.law

    @override
    def autocovariances(self) -> Iterator[Float[Tensor, "d d"]]:
        yield self.law.cov
        yield from self.autocorrelation[:, None, None] * self.law.cov

    @override
    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        # circulant embedding: white tokens on a circle so long that no two of the first
        # n meet around it, filtered by the root of the spectral density
        size = n + 2 * len(self.autocorrelation) + 1
        zero = torch.zeros_like(self.law.mean)
        white = Gaussian.unchecked(zero, self.law.cov).sample(size, generator)
        root = self._spectral_density(size).clamp(min=0).sqrt()
        spectrum = torch.fft.rfft(white, dim=0) * root[:, None]
        return self.law.mean + torch.fft.irfft(spectrum, n=size, dim=0)[:n]

    def _spectral_density(self, size: int) -> Tensor:
        r"""Return $1 + 2\sum_k \rho_k \cos(k\omega)$ at the frequencies of a circle."""
        one = self.autocorrelation.new_ones(1)
        lags = torch.cat([one, self.autocorrelation])
        return 2 * torch.fft.rfft(lags, n=size).real - 1
