r"""Radii from held-out errors, for when the tokens are gone.

If the error of the next query and `N` held-out ones are exchangeable, it exceeds the
$\lceil (1 - \delta)(N + 1) \rceil$-th smallest of them with probability at most
$\delta$. Queries drift: the errors must be held out where the next queries will be, as
far from the tokens that the method was fitted on (docs/theory.md, section 15.5).
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.compress.certificate import Certificate, Status, check_delta


def conformal_radius(
    errors: Float[Tensor, "*b n"], delta: float
) -> Float[Tensor, "*b"]:
    r"""Return the radius that an exchangeable next error exceeds with chance `delta`.

    Infinite when $\lceil (1 - \delta)(N + 1) \rceil > N$: too few errors for so small
    a `delta`.

    Args:
        errors: Held-out errors, absolute or relative, of at least one query.
        delta: The probability of a larger error.

    Raises:
        ValueError: `delta` is no probability.

    Cites:
        [vovk:05], Proposition 2.3 for split prediction sets.
    """
    check_delta(delta)
    count = errors.shape[-1]
    # a hair below, so that 0.95 * 20 = 19.000000000000004 has rank 19
    rank = math.ceil((1 - delta) * (count + 1) * (1 - 1e-12))
    if rank > count:
        return errors.new_full(errors.shape[:-1], torch.inf)
    return errors.kthvalue(rank, dim=-1).values


def weighted_conformal_radius(
    errors: Float[Tensor, "*b n"], weights: Float[Tensor, " n"], delta: float
) -> Float[Tensor, "*b"]:
    r"""Return the radius when some held-out queries are more like the next than others.

    The smallest error whose cumulated share of $\sum_i w_i + 1$ reaches $1 - \delta$;
    the next query itself counts 1 at infinity. The next error exceeds it with
    probability at most $\delta + \sum_i \tilde w_i\, d_{TV}(R, R^i)$, where
    $\tilde w_i$ are the shares and $R^i$ is the sequence of errors with the next one
    and the i-th exchanged.

    Args:
        errors: Held-out errors, absolute or relative.
        weights: How much each counts, between 0 and 1, chosen without looking at the
            errors: for example `0.99 ** age`.
        delta: The probability of a larger error, but for the drift.

    Raises:
        ValueError: `delta` is no probability, or a weight is not in [0, 1].

    Cites:
        [barber:23], Theorem 2.
    """
    check_delta(delta)
    if not bool(((weights >= 0) & (weights <= 1)).all()):
        raise ValueError(f"weights must lie in [0, 1]; got {weights}")
    ordered, order = errors.sort(dim=-1)
    share = weights[order].cumsum(-1) / (weights.sum() + 1)
    reached = share * (1 + 1e-12) >= 1 - delta
    return ordered.where(reached, torch.inf).amin(-1)


def held_out_certificate(
    answer: Float[Tensor, "*b m v"],
    share: Float[Tensor, "*b m"],
    errors: Float[Tensor, "*b r n"],
    shares: Float[Tensor, "*b r n"],
    delta: float,
) -> Certificate:
    r"""Return balls around answers, as wide as each query leans on the summaries.

    The radius is the conformal one of errors over shares, times the query's own share:
    a query that looks at exact tokens alone is answered exactly. Exchangeable are then
    the ratios, which drift less than the errors do.

    Queries of one passage resemble each other. With `r` rehearsals, at different places
    of the prompt, the largest of their radii counts: if rehearsals and what follows are
    exchangeable as wholes, then with probability `r / (r + 1)` it is at least the
    radius that what follows would itself have asked for (docs/theory.md, (15.13)).

    Args:
        answer: The compressed head's outputs.
        share: The part of each query's mass that comes from summaries.
        errors: Held-out errors in the units of the values, of at least one query in
            each rehearsal.
        shares: The shares of the held-out queries, above 0.
        delta: The probability that a ball may miss.

    Raises:
        ValueError: `delta` is no probability.

    Cites:
        [lei:18], section 5.2 for errors over a scale.
    """
    widest = conformal_radius(errors / shares, delta).amax(-1, keepdim=True)
    radius = widest * share
    return Certificate(answer, radius, delta, Status.EXCHANGEABLE)


def summarised_share(
    exact: Float[Tensor, "*b"], whole: Float[Tensor, "*b"]
) -> Float[Tensor, "*b"]:
    r"""Return the part of the mass that is not exact, $1 - e^{a - b}$, above 0.

    Args:
        exact: $a$, the log-mass of the exact tokens.
        whole: $b$, that of all, with the summaries' own; larger or equal.
    """
    # a ratio to it must exist, also where rounding leaves nothing of the summaries
    return -torch.expm1(exact - whole).clamp(max=-torch.finfo(exact.dtype).eps)
