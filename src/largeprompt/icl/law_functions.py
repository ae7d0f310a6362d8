r"""The exact law at one prompt length as differentiable functions on tensors.

The risk of a head needs $\phi$ and $(\psi - \phi)/s^2$ (docs/theory.md, section 2) at
thousands of logit variances at once, with derivatives. In $\log(1 + s^2)$ both are so
smooth that short polynomials on a few cells reach rounding nearly everywhere.
"""

import dataclasses
import math
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.laws import gaussian_law
from largeprompt.laws.exact import LARGEST_LOGIT_VARIANCE, LARGEST_N

CELLS = 24
DEGREE = 12  # relative error below 1e-10 for every n up to 1e15
WIDTH = math.log1p(LARGEST_LOGIT_VARIANCE) / CELLS


class LawValues(NamedTuple):
    r"""$\phi$ and $(\psi - \phi)/s^2$ at some logit variances."""

    inverse_ess: Tensor
    parallel_excess: Tensor


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LawFunctions:
    r"""$\phi(n, \cdot)$ and $(\psi - \phi)/s^2$ as functions of $s^2 \in [0, 400]$.

    Attributes:
        n: The prompt length; infinite for the limit, where both are zero.
        coefficients: Of the polynomials of each cell, lowest power first, of
            $\log\phi$ and of the ratio of the excess to $\phi$.
    """

    n: float
    coefficients: Float[Tensor, "cells powers 2"]

    def __call__(self, logit_variance: Float[Tensor, "*batch"]) -> LawValues:
        """Return both functions, differentiable to any order.

        Raises:
            ValueError: A logit variance is above 400 or not a number.
        """
        largest = logit_variance.detach().max()
        if not largest <= LARGEST_LOGIT_VARIANCE * (1 + 1e-12):
            raise ValueError(
                f"every logit variance must be at most {LARGEST_LOGIT_VARIANCE:g}; "
                f"got {float(largest):g}: the bilinear form is too large"
            )
        place = torch.log1p(logit_variance) / WIDTH
        cell = place.detach().long().clamp(0, CELLS - 1)
        place = 2 * (place - cell) - 1  # from -1 to 1 in each cell
        powers = self.coefficients[cell].unbind(-2)
        total = powers[-1]
        for power in reversed(powers[:-1]):
            total = power + place.unsqueeze(-1) * total
        log_inverse_ess, ratio = total.unbind(-1)
        inverse_ess = log_inverse_ess.exp()
        return LawValues(inverse_ess, inverse_ess * ratio)


def law_functions(n: float) -> LawFunctions:
    r"""Tabulate the exact law at `n`; a third of a second.

    Args:
        n: Prompt length from 1 to $10^{15}$, or infinity.

    Raises:
        ValueError: `n` is outside its range or not a number.
    """
    if not (1 <= n <= LARGEST_N or n == math.inf):
        raise ValueError(
            f"n must be a number from 1 to {LARGEST_N:g} or infinite; got {n}"
        )
    if n == math.inf:
        limit = torch.zeros(CELLS, DEGREE + 1, 2, dtype=torch.float64)
        limit[:, 0, 0] = -math.inf  # log phi
        return LawFunctions(n, limit)
    # cells share their end points, so the functions are continuous
    nodes = -np.cos(math.pi * np.arange(DEGREE + 1) / DEGREE)
    place = WIDTH * (np.arange(CELLS)[:, None] + (nodes + 1) / 2)
    law = gaussian_law(n, np.minimum(np.expm1(place), LARGEST_LOGIT_VARIANCE))
    values = [np.log(law.inverse_ess), law.parallel_excess / law.inverse_ess]
    powers = np.vander(nodes, increasing=True)
    fitted = np.linalg.solve(powers, np.stack(values, -1))  # cell, power, function
    return LawFunctions(float(n), torch.from_numpy(fitted))
