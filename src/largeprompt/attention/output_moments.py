r"""What a head answers over a finite prompt, for tokens of any law, in matrix form.

Exact for the laws that `labelled` knows; for any other, an average over drawn prompts,
only when asked for and marked as such.
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention.head import Head
from largeprompt.attention.labelled import LabelledTokens, labelled
from largeprompt.attention.simulation import Simulation
from largeprompt.laws import gaussian_law
from largeprompt.laws.status import Status
from largeprompt.laws.weights import weight_moments
from largeprompt.measures import Gaussian, Measure


@final
@dataclasses.dataclass(frozen=True, eq=False)
class OutputMoments:
    r"""Moments of a head's output $T_n$ over `n` independent tokens, in float64.

    Attributes:
        n: The prompt length.
        limit: $T$, the output on the law itself.
        mean: $E[T_n]$.
        error: $E[(T_n - T)(T_n - T)^\top]$.
        jacobian: $E[\partial T_n/\partial u] = V E[C_n]$, $C_n$ the covariance of the
            tokens under the softmax weights.
        status: Exact, or Monte Carlo.
        interval: Confidence interval of the mean square error; a single point where
            that is exact.
    """

    n: int
    limit: Float[Tensor, " v"]
    mean: Float[Tensor, " v"]
    error: Float[Tensor, "v v"]
    jacobian: Float[Tensor, "v d"]
    status: Status
    interval: tuple[float, float]

    @property
    def mean_square_error(self) -> float:
        r"""$E\|T_n - T\|^2$."""
        return float(self.error.trace())


@torch.no_grad()
def output_moments(
    head: Head,
    measure: Measure,
    z: Float[Tensor, " e"],
    n: int,
    *,
    simulation: Simulation | None = None,
) -> OutputMoments:
    r"""Return the moments of a head's output over `n` tokens of a measure.

    Args:
        head: The head.
        measure: The law of a token.
        z: The token that asks; not among the keys (see `self_attention_moments`).
        n: The prompt length.
        simulation: How to draw prompts when no exact reduction of the law is known;
            not used when one is.

    Raises:
        ValueError: If the limit does not exist at this tilt, or no reduction is known
            and no simulation given.

    Source: derived in docs/theory.md, section 4.
    """
    tilt = head.tilt(z)
    if float(measure.log_mgf(tilt)) == torch.inf:
        raise ValueError(
            "the tilt must lie where log_mgf is finite; "
            f"got log_mgf = inf at {tilt.tolist()}"
        )
    value = head.value.double()
    if isinstance(measure, Gaussian):
        return _gaussian(value, measure, tilt, n)
    if (tokens := labelled(measure, tilt)) is not None:
        return _labelled(value, tokens, n)
    if simulation is None:
        raise ValueError(
            f"no exact finite-prompt law of {type(measure).__name__} is known; "
            "got no simulation to estimate it by"
        )
    drawn = simulation.run(head, measure, z, n)
    return OutputMoments(
        n=n,
        limit=head.output(measure, z).double(),
        mean=drawn.mean,
        error=drawn.error,
        jacobian=drawn.jacobian,
        status=Status.MONTE_CARLO,
        interval=drawn.interval,
    )


def _gaussian(value: Tensor, gaussian: Gaussian, tilt: Tensor, n: int) -> OutputMoments:
    r"""Two scalars decide everything: $\phi$ and $(\psi - \phi)/s^2$, and $\phi'/s$."""
    cov = gaussian.cov.double()
    shift = cov @ tilt.double()
    law = gaussian_law(n, max(float(tilt.double() @ shift), 0.0))
    phi, slope = float(law.inverse_ess), float(law.inverse_ess_slope)
    response = value @ shift
    mean_value = value @ gaussian.mean.double()
    error = phi * value @ cov @ value.mT
    error += float(law.parallel_excess) * torch.outer(response, response)
    size = float(error.trace())
    return OutputMoments(
        n=n,
        limit=mean_value + response,
        mean=mean_value + (1 - phi) * response,
        error=error,
        jacobian=value @ ((1 - phi) * cov - slope * torch.outer(shift, shift)),
        status=Status.EXACT,
        interval=(size, size),
    )


def _labelled(value: Tensor, tokens: LabelledTokens, n: int) -> OutputMoments:
    """Sum the moments of the weights against those of the tokens given their labels."""
    tilted = torch.softmax(tokens.probability.log() + tokens.logit, dim=0)
    centre = tilted @ tokens.coordinates
    features = tokens.coordinates - centre
    weights = weight_moments(
        n, tokens.probability.numpy(), tokens.logit.numpy(), features.numpy()
    )
    first, second = torch.as_tensor(weights.first), torch.as_tensor(weights.second)
    pairs = torch.as_tensor(weights.pairs)

    def moment(weight: Tensor, extra: Tensor) -> Tensor:
        """The sum over labels of their weight times their second moment."""
        inner = features.mT @ (weight.unsqueeze(-1) * features) + extra
        within = torch.einsum("j,jde->de", weight @ tokens.scales, tokens.covariances)
        return tokens.directions.mT @ inner @ tokens.directions + within

    error = moment(second, pairs)
    spread = moment(first, torch.zeros_like(pairs)) - error
    limit = centre @ tokens.directions
    output_error = value @ error @ value.mT
    size = float(output_error.trace())
    return OutputMoments(
        n=n,
        limit=value @ limit,
        mean=value @ (limit + (first @ features) @ tokens.directions),
        error=output_error,
        jacobian=value @ spread,
        status=Status.EXACT,
        interval=(size, size),
    )
