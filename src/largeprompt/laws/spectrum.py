r"""Heads that are not isotropic, by their spectra: what a plan has to know of them.

For one query, only the values' spectrum matters and where the tilt points in it: the
relative error is that of an isotropic head of another dimension. For a random query,
the spectrum of its logit variance takes the place of the logit variance.
"""

import dataclasses
import math
from typing import final

SLACK = 1e-9  # of a sum of shares


@final
@dataclasses.dataclass(frozen=True)
class ValueSpectrum:
    r"""The values of an anisotropic head, as one query sees them.

    With $V G^{1/2} = \sum_i \sqrt{g_i}\, a_i r_i^\top$ and the whitened tilt
    $e = G^{1/2} u / s$, the shares are $p_i = (r_i \cdot e)^2$, and

    $$ \frac{\|V G u\|^2}{\mathrm{tr}(V G V^\top)}
       = s^2 \frac{\sum_i g_i p_i}{\sum_i g_i} = \frac{s^2}{d_\mathrm{eff}} . $$

    The error relative to the root mean square size of a (centred) value is therefore
    that of an isotropic head in dimension $d_\mathrm{eff}$.

    Attributes:
        value_eigenvalues: $g_i \ge 0$, the spectrum of $V G V^\top$.
        shares: $p_i \ge 0$, of sum at most 1; what is missing lies in directions that
            $V$ does not read. When left out, $p_i = g_i / \sum_j g_j$: the shares of a
            tilt without a preferred direction when $V = I$.
    """

    value_eigenvalues: tuple[float, ...]
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check both vectors.

        Raises:
            ValueError: A number is negative or not finite, the eigenvalues are all
                zero, or the shares do not fit.
        """
        check_spectrum("value_eigenvalues", self.value_eigenvalues)
        if math.fsum(self.value_eigenvalues) == 0:
            raise ValueError("some value eigenvalue must be above 0; got none")
        if not self.shares:
            return
        check_spectrum("shares", self.shares)
        if len(self.shares) != len(self.value_eigenvalues):
            raise ValueError(
                "value_eigenvalues and shares must be as many; got "
                f"{len(self.value_eigenvalues)} and {len(self.shares)}"
            )
        if (total := math.fsum(self.shares)) > 1 + SLACK:
            raise ValueError(f"shares must sum to at most 1; got {total:g}")

    @property
    def effective_dim(self) -> float:
        r"""$d_\mathrm{eff} = \sum_i g_i / \sum_i g_i p_i \ge 1$, infinite at no share.

        Without shares the participation ratio $(\sum_i g_i)^2 / \sum_i g_i^2$.
        """
        total = math.fsum(self.value_eigenvalues)
        shares = self.shares or tuple(g / total for g in self.value_eigenvalues)
        pairs = zip(self.value_eigenvalues, shares, strict=True)
        seen = math.fsum(g * p for g, p in pairs)
        return max(1.0, total / seen) if seen > 0 else math.inf


@final
@dataclasses.dataclass(frozen=True)
class QueryLawSpectrum:
    r"""A head under a Gaussian query law $z \sim N(0, S_z)$.

    Attributes:
        logit_eigenvalues: $\lambda_i \ge 0$, the spectrum of
            $S_z^{1/2} U^\top G U S_z^{1/2}$: a query has the logit variance
            $\sum_i \lambda_i \xi_i^2$, $\xi$ standard normal.
        responses: $\|V G U S_z^{1/2} e_i\|^2$ for its unit eigenvectors.
        variance: $\mathrm{tr}(V G V^\top)$, above 0.
    """

    logit_eigenvalues: tuple[float, ...]
    responses: tuple[float, ...]
    variance: float

    def __post_init__(self) -> None:
        """Check the scalars.

        Raises:
            ValueError: A number is negative or not finite, or the vectors do not fit.
        """
        check_spectrum("logit_eigenvalues", self.logit_eigenvalues)
        check_spectrum("responses", self.responses)
        if len(self.responses) != len(self.logit_eigenvalues):
            raise ValueError(
                "logit_eigenvalues and responses must be as many; got "
                f"{len(self.logit_eigenvalues)} and {len(self.responses)}"
            )
        if not 0 < self.variance < math.inf:
            raise ValueError(
                f"variance must be a finite number above 0; got {self.variance}"
            )


def check_spectrum(name: str, values: tuple[float, ...]) -> None:
    """Raise a ValueError unless `values` are some finite numbers of at least 0."""
    if not values:
        raise ValueError(f"{name} must hold at least one number; got none")
    for value in values:
        if not 0 <= value < math.inf:
            raise ValueError(
                f"{name} must be finite numbers of at least 0; got {value}"
            )
