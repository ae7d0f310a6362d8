"""The one interface of the project: a probability measure known by its cumulants."""

import abc
import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


class Measure(abc.ABC):
    r"""A probability measure $\mu$ on $\mathbb{R}^d$, known through its cumulants.

    The measure tilted by $t$ has density $e^{t \cdot x - \Lambda(t)}$ with respect to
    $\mu$, where $\Lambda(t) = \log \mathbb{E}_\mu e^{t \cdot x}$. Softmax attention is
    the mean of the token measure tilted by the query (Boursier and Boyer, 2026).

    | method        | mathematics                    | in attention              |
    |---------------|--------------------------------|---------------------------|
    | `log_mgf`     | $\Lambda_\mu(t)$               | log-partition             |
    | `tilted_mean` | $\nabla\Lambda_\mu(t)$         | the head's output         |
    | `tilted_cov`  | $\nabla^2\Lambda_\mu(t)$       | its Jacobian in $t$       |
    | `sample`      | $x_1, \dots, x_n \sim \mu$     | a prompt of `n` tokens    |

    A `Measure` is *one* law, never a batch of laws. Batches live in the tilt `t`.
    Subclasses are abstract or final. To change a measure, wrap it.

    Outside the domain of $\Lambda$ no tilted law exists: `log_mgf` and every entry of
    `tilted_mean` and `tilted_cov` are $+\infty$ there, and never NaN.
    """

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """The dimension $d$ of the space the measure lives on."""

    @abc.abstractmethod
    def log_mgf(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        r"""Return $\Lambda_\mu(t)$; $+\infty$ where the integral diverges."""

    @abc.abstractmethod
    def tilted_mean(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        r"""Return $\nabla\Lambda_\mu(t)$, the mean of the tilted measure $\mu_t$."""

    @abc.abstractmethod
    def tilted_cov(self, t: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d d"]:
        r"""Return $\nabla^2\Lambda_\mu(t)$, the covariance of $\mu_t$."""

    @abc.abstractmethod
    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n d"]:
        r"""Draw `n` independent points of $\mu$; draws carry no gradient."""


def on_domain(
    measure: Measure,
    t: Float[Tensor, "*batch d"],
    moment: Callable[[Tensor], Tensor],
) -> Tensor:
    """Evaluate `moment` where `log_mgf` is finite, and answer infinity elsewhere.

    A tilt outside the domain is replaced by the tilt zero, which every domain holds,
    before `moment` sees it: neither values nor gradients meet an infinity.

    Args:
        measure: The measure whose domain counts.
        t: Tilts.
        moment: A function of a batch of tilts that lie in the domain.
    """
    inside = measure.log_mgf(t) != math.inf  # true at NaN: NaN in, NaN out
    value = moment(torch.where(inside.unsqueeze(-1), t, 0))
    inside = inside.reshape(inside.shape + (1,) * (value.ndim - inside.ndim))
    return torch.where(inside, value, math.inf)
