r"""What else holds of a plan: what is proven, a longer prompt, correlated tokens.

In the units of a plan $\mathrm{tr}(V G V^\top) = 1$ and
$\|V G u\|^2 = s^2/d$, so that a root mean square error is $\varepsilon$ itself.
"""

import dataclasses
import math
from typing import final

from largeprompt.errors import UnreachableTargetError
from largeprompt.laws.bounds import NestedDriftBound, OutputBound
from largeprompt.laws.correlated import geometric_autocorrelation, long_run
from largeprompt.laws.drift import drift_law
from largeprompt.laws.exact import LARGEST_N
from largeprompt.laws.phases import Phase
from largeprompt.laws.plan import Plan
from largeprompt.laws.status import Status

DELTA = 0.05  # the probability that a drift exceeds its radius


@final
@dataclasses.dataclass(frozen=True)
class Proof:
    r"""What `OutputBound` proves of a plan.

    Attributes:
        target: The error that `n` is proven for.
        n: The length from which on an error of `target` is proven; None if that is
            beyond $10^{15}$ tokens.
        eps: The error proven at the length of the plan; None if there is no bound.
        obstacle: Why there is none; empty where there is one.
        status: A proven bound.
    """

    target: float
    n: int | None
    eps: float | None
    obstacle: str
    status: Status = Status.BOUND


@final
@dataclasses.dataclass(frozen=True)
class Extension:
    r"""How far the output moves when the prompt of a plan grows.

    Attributes:
        n: The length of the longer prompt, which begins with the shorter one.
        drift: The root mean square movement, relative as $\varepsilon$ is; exact.
        radius: What the movement exceeds with probability at most `delta`; Markov's
            inequality for the exact second moment.
        delta: That probability.
        proven: The bound of `NestedDriftBound` on `drift`; None if there is none.
        status: That of `drift`, exact.
    """

    n: int
    drift: float
    radius: float
    delta: float
    proven: float | None
    status: Status = Status.EXACT


@final
@dataclasses.dataclass(frozen=True)
class CorrelatedTokens:
    r"""A plan for the tokens of a first-order autoregression, to leading order.

    Attributes:
        correlation: $\rho$ of neighbouring tokens.
        normaliser_share: Independent tokens per token, for the normaliser's variance.
        across_share: The same for the bias and the error across the tilt.
        along_share: The same for the error along the tilt.
        n: Correlated tokens that leave the same leading-order error as the plan's
            tokens do; None beyond $10^{15}$.
        reliable: Whether the plan is in the linear phase; outside it the leading order
            says nothing of its length.
        status: Asymptotic.
    """

    correlation: float
    normaliser_share: float
    across_share: float
    along_share: float
    n: int | None
    reliable: bool
    status: Status = Status.ASYMPTOTIC


def prove(plan: Plan, target: float) -> Proof:
    """Return what is proven at the length of a plan, and from where on `target` is."""
    bound = output_bound(plan.logit_variance, plan.dim)
    try:
        length = bound.smallest_n(target)
    except UnreachableTargetError:
        length = None
    mse = bound.mse(plan.n)
    return Proof(
        target=target,
        n=length,
        eps=math.sqrt(mse) if mse < math.inf else None,
        obstacle=bound.obstacle(plan.n),
    )


def extend(plan: Plan, n: int) -> Extension:
    """Return how far the output moves when a plan's prompt grows to `n` tokens.

    Raises:
        ValueError: `n` is not above the length of the plan.
    """
    if n <= plan.n:
        raise ValueError(
            f"the longer prompt must have more than {plan.n} tokens; got {n}"
        )
    response = plan.logit_variance / plan.dim
    law = drift_law(plan.n, n - plan.n, plan.logit_variance)
    bound = NestedDriftBound(
        kappa=plan.logit_variance,
        tau_squared=1 + response,
        omega_squared=1 + response,
        shift_squared=response,
        added=n - plan.n,
    )
    proven = bound.mse(plan.n)
    return Extension(
        n=n,
        drift=math.sqrt(law.mean_square(response=response, variance=1.0)),
        radius=law.radius(response=response, variance=1.0, delta=DELTA),
        delta=DELTA,
        proven=math.sqrt(proven) if proven < math.inf else None,
    )


def correlate(plan: Plan, correlation: float) -> CorrelatedTokens:
    r"""Return what correlated tokens make of a plan.

    Raises:
        ValueError: The modulus of `correlation` is 1 or more.
    """
    sums = long_run(plan.logit_variance, geometric_autocorrelation(correlation))
    response = plan.logit_variance / plan.dim
    independent = math.exp(plan.logit_variance) * (1 + response)
    # times n, to leading order: the error of correlated over that of independent tokens
    inflation = sums.mean_square_error(1.0, response, 1.0) / independent
    needed = math.ceil(plan.n * inflation)
    return CorrelatedTokens(
        correlation=correlation,
        normaliser_share=sums.normaliser_share,
        across_share=sums.across_share,
        along_share=sums.along_share,
        n=needed if needed <= LARGEST_N else None,
        reliable=plan.phase is Phase.LINEAR,
    )


def output_bound(logit_variance: float, dim: float) -> OutputBound:
    """Return the bound on the relative error of a plan's head on Gaussian tokens."""
    size = 1 + logit_variance / dim
    return OutputBound(kappa=logit_variance, tau_squared=size, omega_squared=size)
