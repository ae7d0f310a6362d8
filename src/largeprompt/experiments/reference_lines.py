"""What theory says of the errors that an experiment measures."""

import dataclasses
import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.attention import Head, finite_prompt_law
from largeprompt.attention.bounds import (
    bilinear_gradient_bound,
    output_bound,
    value_gradient_bound,
)
from largeprompt.attention.query_average import query_spectrum
from largeprompt.experiments.simulation import Quantity
from largeprompt.measures import Gaussian, Measure

BOUNDS = {
    Quantity.OUTPUT: output_bound,
    Quantity.BILINEAR_GRADIENT: bilinear_gradient_bound,
    Quantity.VALUE_GRADIENT: value_gradient_bound,
}


def exact_errors(
    head: Head,
    measure: Measure,
    queries: Float[Tensor, "m e"],
    quantity: Quantity,
    lengths: Sequence[int],
) -> list[float] | None:
    r"""Return the exact mean square errors over the queries at each length.

    None where no exact law is known: tokens that are not Gaussian, the gradient in $U$.
    """
    if not isinstance(measure, Gaussian) or quantity is Quantity.BILINEAR_GRADIENT:
        return None
    copies = 1
    if quantity is Quantity.VALUE_GRADIENT:
        copies = len(head.value)
        identity = torch.eye(measure.dim, dtype=head.value.dtype)
        head = dataclasses.replace(head, value=identity)
    return [
        copies
        * float(finite_prompt_law(head, measure, queries, n).mean_square_error.mean())
        for n in lengths
    ]


def proven_errors(
    head: Head,
    measure: Measure,
    queries: Float[Tensor, "m e"],
    quantity: Quantity,
    lengths: Sequence[int],
) -> list[float]:
    """Return proven bounds on the mean over the queries; infinite where there is none.

    Every query has its own bound; the mean exists where all of them do.
    """
    bounds = [BOUNDS[quantity](head, measure, z) for z in queries]
    return [math.fsum(b.mse(n) for b in bounds) / len(bounds) for n in lengths]


def rate_exponent(head: Head, measure: Measure, quantity: Quantity) -> float | None:
    r"""Return $r$ of $n^{-r}$ for a query $z \sim N(0, I)$ on Gaussian tokens.

    None for tokens that are not Gaussian, and for the gradient in $U$ unless it is 1.
    The exponent is that of the law of the queries; a finite sample of them has the
    exponent 1 in the end.
    """
    if not isinstance(measure, Gaussian):
        return None
    e = head.query.shape[1]
    queries = Gaussian(
        torch.zeros(e, dtype=torch.float64), torch.eye(e, dtype=torch.float64)
    )
    rate = query_spectrum(head, measure, queries).rate().mean_square
    return None if quantity is Quantity.BILINEAR_GRADIENT and rate < 1 else rate
