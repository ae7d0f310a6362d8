"""The error of a head averaged over a Gaussian law of its queries."""

import dataclasses
from collections.abc import Iterable
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention.head import Head
from largeprompt.laws.curve import ErrorCurve, error_curve
from largeprompt.laws.rates import RateExponents, limit_constant, rate_exponents
from largeprompt.measures import Gaussian


@final
@dataclasses.dataclass(frozen=True, eq=False)
class QuerySpectrum:
    r"""What the average over $z \sim N(0, S_z)$ sees of a head on Gaussian tokens.

    Attributes:
        eigenvalues: Spectrum of $M = S_z^{1/2} U^\top G U S_z^{1/2}$: a query has the
            logit variance $\sum_i \lambda_i \xi_i^2$, $\xi$ standard normal.
        responses: $\|V G U S_z^{1/2} e_i\|^2$ for the unit eigenvectors of $M$.
        variance: $\mathrm{tr}(V G V^\top)$.
    """

    eigenvalues: Float[Tensor, " e"]
    responses: Float[Tensor, " e"]
    variance: float

    def error_curve(self, lengths: Iterable[int | float]) -> ErrorCurve:
        r"""Return the exact $E_z E\|T_n - T\|^2$ at each of the `lengths`."""
        return error_curve(
            list(lengths),
            self.eigenvalues.numpy(),
            self.responses.numpy(),
            self.variance,
        )

    def rate(self) -> RateExponents:
        """Return the exponents that the top eigenvalue decides."""
        return rate_exponents(float(self.eigenvalues.max()))

    def limit_constant(self) -> float:
        r"""Return $\lim_n n\, E_z E\|T_n - T\|^2$, infinite from $\lambda = 1/2$ on."""
        return limit_constant(
            self.eigenvalues.numpy(), self.responses.numpy(), self.variance
        )


@torch.no_grad()
def query_spectrum(head: Head, tokens: Gaussian, queries: Gaussian) -> QuerySpectrum:
    r"""Return the scalars of a head whose queries are drawn from a centred Gaussian.

    Args:
        head: The head.
        tokens: The law of the tokens.
        queries: The law of $z$, of mean zero, independent of the prompt.

    Raises:
        ValueError: If the mean of the queries is not zero.
    """
    if queries.mean.any():
        raise ValueError(f"queries must have mean zero; got {queries.mean.tolist()}")
    variances, axes = torch.linalg.eigh(queries.cov.double())
    root = axes * variances.clamp(min=0).sqrt()
    cov, value = tokens.cov.double(), head.value.double()
    tilts = head.bilinear_form.double() @ root
    shifts = cov @ tilts
    eigenvalues, vectors = torch.linalg.eigh(tilts.mT @ shifts)
    return QuerySpectrum(
        eigenvalues=eigenvalues.clamp(min=0),
        responses=(value @ shifts @ vectors).square().sum(0),
        variance=float((value @ cov @ value.mT).trace()),
    )
