r"""Bias and covariance of a long prompt's output, for tokens of any law.

The delta method needs $\Lambda$ and the tilted moments at $u$ and at $2u$; for tokens
that are not independent, the autocovariances of their sequence.
"""

import dataclasses
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention.head import Head
from largeprompt.laws import linear_length
from largeprompt.laws.asymptotic import DeltaMethod
from largeprompt.laws.status import Status
from largeprompt.measures import Measure
from largeprompt.measures.process import GaussianSequence

PROBE = 1e-6  # how far around a tilt the domain is probed, relative


@final
@dataclasses.dataclass(frozen=True, eq=False)
class AsymptoticMoments:
    r"""Leading order in $1/n$ of the bias and the covariance of $T_n$.

    Attributes:
        n: The prompt length.
        bias: $E[T_n] - T$.
        covariance: $\mathrm{Cov}(T_n)$.
        reliable_from: A length below which the leading order is not to be used:
            $e^{2\kappa}$, or $e^{2 s^2}$ for correlated tokens, which need more.
    """

    status: ClassVar[Status] = Status.ASYMPTOTIC
    n: int
    bias: Float[Tensor, " v"]
    covariance: Float[Tensor, "v v"]
    reliable_from: float

    @property
    def mean_square_error(self) -> float:
        r"""$E\|T_n - T\|^2$ to leading order: the squared bias is of the next one."""
        return float(self.covariance.trace())


@torch.no_grad()
def delta_method(
    head: Head, measure: Measure, z: Float[Tensor, " e"], n: int
) -> AsymptoticMoments:
    r"""Return bias and covariance of a head over `n` independent tokens of a measure.

    $$ n \mathrm{Cov}(T_n) \to e^\kappa V [C(2u) + D D^\top] V^\top, \qquad
       n (E[T_n] - T) \to -e^\kappa V D. $$

    Args:
        head: The head.
        measure: The law of a token.
        z: The token that asks.
        n: The prompt length.

    Hypotheses:
        0 and $2u$ are interior to the domain of $\Lambda$; that $\Lambda(2u)$ is finite
        is not enough.

    Raises:
        ValueError: If they are not.

    Source: derived in docs/theory.md, section 8.
    """
    tilt = head.tilt(z)
    check_interior(measure, torch.zeros_like(tilt))
    check_interior(measure, 2 * tilt)
    value = head.value
    excess = max(float(measure.log_mgf(2 * tilt) - 2 * measure.log_mgf(tilt)), 0.0)
    shift = value @ (measure.tilted_mean(2 * tilt) - measure.tilted_mean(tilt))
    spread = value @ measure.tilted_cov(2 * tilt) @ value.mT
    scalars = DeltaMethod(
        n=n,
        excess=excess,
        spread=float(spread.trace()),
        shift=float(shift.square().sum()),
    )
    return AsymptoticMoments(
        n=n,
        bias=-scalars.inverse_ess * shift,
        covariance=scalars.inverse_ess * (spread + torch.outer(shift, shift)),
        reliable_from=scalars.reliable_from,
    )


@torch.no_grad()
def long_run_moments(
    head: Head, sequence: GaussianSequence, z: Float[Tensor, " e"], n: int
) -> AsymptoticMoments:
    r"""Return bias and covariance of a head over `n` consecutive correlated tokens.

    With $\Gamma_k = \mathrm{Cov}(x_0, x_k)$ and the sums over all lags
    $k \in \mathbb{Z}$,

    $$ n \mathrm{Cov}(T_n) \to V \sum_k e^{u^\top \Gamma_k u}
       [\Gamma_k + \Gamma_k u u^\top \Gamma_k] V^\top, \qquad
       n (E[T_n] - T) \to -V \sum_k e^{u^\top \Gamma_k u}\, \Gamma_k u. $$

    Args:
        head: The head.
        sequence: The law of the sequence of tokens.
        z: The token that asks.
        n: The prompt length.

    Hypotheses:
        $\sum_k \|\Gamma_k\|$ is finite.

    Source: derived in docs/theory.md, section 8.
    """
    tilt, value = head.tilt(z), head.value
    total = torch.zeros_like(sequence.marginal.cov)
    drift = torch.zeros_like(tilt)
    for lag, ahead in enumerate(sequence.autocovariances()):
        for gamma in [ahead] if lag == 0 else [ahead, ahead.mT]:
            mass = torch.exp(tilt @ gamma @ tilt)
            total += mass * (gamma + torch.outer(gamma @ tilt, tilt @ gamma))
            drift += mass * (gamma @ tilt)
    return AsymptoticMoments(
        n=n,
        bias=-value @ drift / n,
        covariance=value @ total @ value.mT / n,
        reliable_from=linear_length(float(tilt @ sequence.marginal.cov @ tilt)),
    )


def check_interior(measure: Measure, tilt: Float[Tensor, " d"]) -> None:
    r"""Raise a ValueError unless `tilt` is interior to the domain of $\Lambda$.

    The domain is convex: finite values at $t \pm \epsilon e_i$ for every axis put $t$
    inside.
    """
    step = PROBE * (1 + float(tilt.norm()))
    axes = step * torch.eye(measure.dim, dtype=tilt.dtype, device=tilt.device)
    if not measure.log_mgf(torch.cat([tilt + axes, tilt - axes])).isfinite().all():
        raise ValueError(
            "0 and twice the tilt must be interior to the domain of log_mgf; "
            f"got {tilt.tolist()}, which is not"
        )
