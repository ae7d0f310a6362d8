"""What a proven bound is: hypotheses in; a mean square, a radius or a length out."""

import abc
import bisect
import math
from typing import ClassVar

from largeprompt.errors import UnreachableTargetError
from largeprompt.laws.status import Status

LARGEST_N = 10**15


class Bound(abc.ABC):
    r"""A theorem on the error of attention over a prompt of $n$ tokens.

    An instance holds the numbers that the hypotheses speak of. It bounds the mean
    square of an error $\Delta_n$ and a radius that $\|\Delta_n\|$ leaves with
    probability at most $\delta$. Where the theorem says nothing the bound is
    $+\infty$, which is true, and `obstacle` says why.

    Subclasses are final. docs/theorems.md is generated from their class variables.

    Attributes:
        quantity: What $\Delta_n$ is.
        statement: The bound as a formula, in LaTeX.
        hypotheses: What must hold.
        cites: Key in docs/references.bib and number of the source's theorem.
        derivation: Where docs/theory.md proves it; empty for a theorem of others.
        status: Whether it is proved, with which constants.
    """

    quantity: ClassVar[str]
    statement: ClassVar[str]
    hypotheses: ClassVar[str]
    cites: ClassVar[str]
    derivation: ClassVar[str]
    status: ClassVar[Status]

    @abc.abstractmethod
    def exists_beyond(self, delta: float | None = None) -> float:
        r"""Return the length beyond which the bound exists; $+\infty$ if at none.

        Args:
            delta: The probability of a violation; the mean square when left out.
        """

    @abc.abstractmethod
    def _mse(self, n: float) -> float:
        """Return the bound on the mean square at a length where it exists."""

    @abc.abstractmethod
    def _radius(self, n: float, delta: float) -> float:
        """Return the radius at a length where it exists."""

    def mse(self, n: float) -> float:
        r"""Return a bound on $E\|\Delta_n\|^2$; $+\infty$ where there is none.

        Args:
            n: The prompt length, at least 1.

        Raises:
            ValueError: `n` is below 1 or not a number.
        """
        check_length(n)
        return self._mse(n) if n > self.exists_beyond() else math.inf

    def radius(self, n: float, delta: float) -> float:
        r"""Return $\rho$ with $P(\|\Delta_n\| > \rho) \le \delta$, or $+\infty$.

        Args:
            n: The prompt length, at least 1.
            delta: The probability of a violation, strictly between 0 and 1.

        Raises:
            ValueError: `n` is below 1, `delta` outside (0, 1), or not a number.
        """
        check_length(n)
        check_probability(delta)
        return self._radius(n, delta) if n > self.exists_beyond(delta) else math.inf

    def obstacle(self, n: float, delta: float | None = None) -> str:
        """Return why there is no bound at `n`; the empty string where there is one."""
        check_length(n)
        if delta is not None:
            check_probability(delta)
        least = self.exists_beyond(delta)
        if n > least:
            return ""
        what = "mean square" if delta is None else f"radius at delta = {delta:g}"
        if least == math.inf:
            return f"{type(self).__name__} bounds no {what} at any length here"
        return (
            f"{type(self).__name__} bounds the {what} beyond {least:.6g} tokens only; "
            f"got n = {n:g}"
        )

    def smallest_n(self, eps: float, delta: float | None = None) -> int:
        r"""Return the smallest length from which on the bound meets `eps`.

        Halving from $10^{15}$ tokens finds a length that misses `eps`, bisection the
        last one that does. A bound that rises before it falls meets `eps` at shorter
        prompts too, and not in between; their lengths are not returned.

        Args:
            eps: The largest error accepted, above 0: a radius if `delta` is given, a
                root mean square if not.
            delta: The probability of a violation.

        Raises:
            ValueError: `eps` is not above 0, or `delta` not in (0, 1).
            UnreachableTargetError: Even at $10^{15}$ tokens the bound is above `eps`.
        """
        if not eps > 0:
            raise ValueError(f"eps must be a number above 0; got {eps}")

        def meets(n: int) -> bool:
            error = math.sqrt(self.mse(n)) if delta is None else self.radius(n, delta)
            return error <= eps

        if not meets(LARGEST_N):
            raise UnreachableTargetError(
                f"{type(self).__name__} proves no error of {eps:g} for prompts of up "
                f"to {LARGEST_N:g} tokens"
            )
        high = LARGEST_N
        while high > 1 and meets(high // 2):
            high //= 2
        low = high // 2 + 1
        return low + bisect.bisect_left(range(low, high), True, key=meets)


def check_length(n: float) -> None:
    """Raise a ValueError unless `n` is a prompt length."""
    if not 1 <= n < math.inf:
        raise ValueError(f"n must be a number of at least 1; got {n}")


def check_probability(delta: float) -> None:
    """Raise a ValueError unless `delta` lies strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1; got {delta}")


def check_nonnegative(**values: float) -> None:
    """Raise a ValueError unless every value is a number of at least 0, or infinite."""
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"{name} must be a number of at least 0; got {value}")
