"""The token laws that an experiment can be asked for by name."""

import enum
import math

import torch

from largeprompt.measures import (
    Gaussian,
    Laplace,
    Measure,
    Rademacher,
    UniformCube,
    UniformSphere,
)

CONDITION = 8.0  # of the covariance of `TokenLaw.CONDITION_8`
DECAY = 0.5  # of the covariance of `TokenLaw.DECAYING`


class TokenLaw(enum.StrEnum):
    r"""A centred law of mean variance one per coordinate.

    | name          | law                                                        |
    |---------------|------------------------------------------------------------|
    | `gaussian`    | $N(0, I)$                                                  |
    | `decaying`    | $N(0, G)$ with $G_{ij} = 0.5^{\|i - j\|}$                  |
    | `condition-8` | $N(0, G)$, eigenvalues geometric with ratio 8 end to end   |
    | `rademacher`  | independent signs                                          |
    | `cube`        | uniform on $[-\sqrt 3, \sqrt 3]^d$                         |
    | `sphere`      | uniform on the sphere of radius $\sqrt d$                  |
    | `laplace`     | independent double exponentials; heavy tails               |
    """

    GAUSSIAN = "gaussian"
    DECAYING = "decaying"
    CONDITION_8 = "condition-8"
    RADEMACHER = "rademacher"
    CUBE = "cube"
    SPHERE = "sphere"
    LAPLACE = "laplace"


def token_law(law: TokenLaw, dim: int) -> Measure:
    """Return a law of tokens in dimension `dim`, in float64.

    Raises:
        ValueError: `dim` is below 1.
    """
    if dim < 1:
        raise ValueError(f"dim must be at least 1; got {dim}")
    ones = torch.ones(dim, dtype=torch.float64)
    zeros = torch.zeros_like(ones)
    match law:
        case TokenLaw.GAUSSIAN:
            return Gaussian(zeros, torch.diag(ones))
        case TokenLaw.DECAYING:
            place = torch.arange(dim, dtype=torch.float64)
            return Gaussian(zeros, DECAY ** (place[:, None] - place).abs())
        case TokenLaw.CONDITION_8:
            spread = CONDITION ** torch.linspace(0, 1, dim, dtype=torch.float64)
            return Gaussian(zeros, torch.diag(spread / spread.mean()))
        case TokenLaw.RADEMACHER:
            return Rademacher(ones)
        case TokenLaw.CUBE:
            return UniformCube(math.sqrt(3) * ones)
        case TokenLaw.SPHERE:
            return UniformSphere(zeros, ones.sum().sqrt())
        case TokenLaw.LAPLACE:
            return Laplace(ones / math.sqrt(2))
