"""Bounds of others, with the constants that they leave open as the user's input."""

import dataclasses
import math
from typing import ClassVar, final

from typing_extensions import override

from largeprompt.laws.bounds.base import Bound
from largeprompt.laws.status import Status


@final
@dataclasses.dataclass(frozen=True)
class SubGaussianOutputBound(Bound):
    r"""The output and the gradient in $V$, tokens and query sub-Gaussian.

    $$ E\|T_n - T\|^2 \le
       c_1 \sigma^6 \frac{\ln n}{n^{c_2 / \sigma^2}}, \quad n \ge 2 $$

    As printed it holds at $n = 1$ too, where it would bound a positive error by 0.
    The radius is Markov's.

    Attributes:
        sigma: The sub-Gaussian norm $\sigma$.
        factor: $c_1$, not given by the source.
        exponent: $c_2$, not given by the source.
    """

    quantity: ClassVar[str] = "output, gradient in $V$"
    statement: ClassVar[str] = r"$c_1 \sigma^6 \ln n / n^{c_2/\sigma^2}$"
    hypotheses: ClassVar[str] = (
        r"tokens and query sub-Gaussian; $n \ge 2$; $c_1$, $c_2$ from the user"
    )
    cites: ClassVar[str] = "boursier-boyer:26, Propositions 3.1 and 3.4"
    derivation: ClassVar[str] = ""
    status: ClassVar[Status] = Status.BOUND

    sigma: float
    factor: float
    exponent: float

    def __post_init__(self) -> None:
        """Check the constants."""
        check_positive(**dataclasses.asdict(self))

    @override
    def exists_beyond(self, delta: float | None = None) -> float:
        return 1.0

    @override
    def _mse(self, n: float) -> float:
        power = n ** (-self.exponent / self.sigma**2)
        return self.factor * self.sigma**6 * math.log(n) * power

    @override
    def _radius(self, n: float, delta: float) -> float:
        return math.sqrt(self._mse(n) / delta)


@final
@dataclasses.dataclass(frozen=True)
class SubGaussianGradientBound(Bound):
    r"""The gradient in $U$, tokens and query sub-Gaussian.

    $$ E\|\nabla_U T_n - \nabla_U T\|^2 \le
       c_1 \sigma^{12} \frac{(\ln n)^2}{n^{c_2 / \sigma^2}}, \quad n \ge 2 $$

    As printed it holds at $n = 1$ too, where it would bound a positive error by 0.
    The radius is Markov's.

    Attributes:
        sigma: The sub-Gaussian norm $\sigma$.
        factor: $c_1$, not given by the source.
        exponent: $c_2$, not given by the source.
    """

    quantity: ClassVar[str] = "gradient in $U$"
    statement: ClassVar[str] = r"$c_1 \sigma^{12} (\ln n)^2 / n^{c_2/\sigma^2}$"
    hypotheses: ClassVar[str] = (
        r"tokens and query sub-Gaussian; $n \ge 2$; $c_1$, $c_2$ from the user"
    )
    cites: ClassVar[str] = "boursier-boyer:26, Proposition 3.4"
    derivation: ClassVar[str] = ""
    status: ClassVar[Status] = Status.BOUND

    sigma: float
    factor: float
    exponent: float

    def __post_init__(self) -> None:
        """Check the constants."""
        check_positive(**dataclasses.asdict(self))

    @override
    def exists_beyond(self, delta: float | None = None) -> float:
        return 1.0

    @override
    def _mse(self, n: float) -> float:
        power = n ** (-self.exponent / self.sigma**2)
        return self.factor * self.sigma**12 * math.log(n) ** 2 * power

    @override
    def _radius(self, n: float, delta: float) -> float:
        return math.sqrt(self._mse(n) / delta)


@final
@dataclasses.dataclass(frozen=True)
class UniformRateBound(Bound):
    r"""The output map, uniformly over queries in a ball: $C(R) / \sqrt n$.

    $C(R)$ grows exponentially with the radius $R$ and is the user's input; so is the
    sense in which it is meant, here a root mean square. The radius is Markov's.

    Attributes:
        constant: $C(R)$.
    """

    quantity: ClassVar[str] = "output, uniformly over a ball of queries"
    statement: ClassVar[str] = r"$C(R)^2 / n$"
    hypotheses: ClassVar[str] = "sub-Gaussian tokens; $C(R)$ from the user"
    cites: ClassVar[str] = "bohbot:26, the uniform rate"
    derivation: ClassVar[str] = ""
    status: ClassVar[Status] = Status.BOUND

    constant: float

    def __post_init__(self) -> None:
        """Check the constant."""
        check_positive(constant=self.constant)

    @override
    def exists_beyond(self, delta: float | None = None) -> float:
        return 0.0

    @override
    def _mse(self, n: float) -> float:
        return self.constant**2 / n

    @override
    def _radius(self, n: float, delta: float) -> float:
        return math.sqrt(self._mse(n) / delta)


@final
@dataclasses.dataclass(frozen=True)
class MomentRateBound(Bound):
    r"""A moment of the law of outputs: $C n^{-\beta}$, $\beta = 1 / (2 (1 + H^2))$.

    $H = \|\Sigma^{1/2} A \Sigma^{1/2}\|$ is the operator norm of the bilinear form in
    whitened tokens, for queries of the tokens' own law. $C$ is the user's input; so is
    the sense in which it is meant, here a root mean square. The radius is Markov's.

    Attributes:
        whitened_norm: $H \ge 0$.
        constant: $C$.
    """

    quantity: ClassVar[str] = "moments of the law of outputs"
    statement: ClassVar[str] = r"$C^2 n^{-2\beta}$, $\beta = 1 / (2 (1 + H^2))$"
    hypotheses: ClassVar[str] = "sub-Gaussian tokens that are the queries too; $C$"
    cites: ClassVar[str] = "bohbot:26, the rate of moments"
    derivation: ClassVar[str] = ""
    status: ClassVar[Status] = Status.BOUND

    whitened_norm: float
    constant: float

    def __post_init__(self) -> None:
        """Check the norm and the constant."""
        if not 0 <= self.whitened_norm < math.inf:
            raise ValueError(
                f"whitened_norm must be at least 0 and finite; got {self.whitened_norm}"
            )
        check_positive(constant=self.constant)

    @property
    def rate(self) -> float:
        r"""$\beta = 1 / (2 (1 + H^2))$, at most a half."""
        return 1 / (2 * (1 + self.whitened_norm**2))

    @override
    def exists_beyond(self, delta: float | None = None) -> float:
        return 0.0

    @override
    def _mse(self, n: float) -> float:
        return self.constant**2 * n ** (-2 * self.rate)

    @override
    def _radius(self, n: float, delta: float) -> float:
        return math.sqrt(self._mse(n) / delta)


def check_positive(**values: float) -> None:
    """Raise a ValueError unless every value is finite and above 0."""
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be finite and above 0; got {value}")
