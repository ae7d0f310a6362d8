import math
from fractions import Fraction

import pytest
import torch

from largeprompt.measures import Gaussian
from largeprompt.testing import assert_is_measure, refutes
from tests.measures.zoo import specimen, tilts


def upper_tail(violations: int, trials: int, delta: Fraction) -> Fraction:
    """P(at least so many violations), in exact arithmetic."""
    return sum(
        (
            math.comb(trials, k) * delta**k * (1 - delta) ** (trials - k)
            for k in range(violations, trials + 1)
        ),
        Fraction(0),
    )


@pytest.mark.parametrize("violations", range(0, 41, 4))
def test_refutes_is_the_exact_binomial_test(violations):
    tail = upper_tail(violations, 40, Fraction(1, 20))
    just_more = min(1.0, float(tail) * (1 + 1e-9))
    assert refutes(violations, 40, 0.05, just_more)
    assert not refutes(violations, 40, 0.05, float(tail) * (1 - 1e-9))


@pytest.mark.parametrize(
    ("method", "lie"),
    [
        ("log_mgf", lambda honest: lambda self, t: honest(self, t) + 1e-3),
        ("log_mgf", lambda honest: lambda self, t: honest(self, t) * math.nan),
        ("tilted_mean", lambda honest: lambda self, t: honest(self, t)[..., :1]),
        ("tilted_cov", lambda honest: lambda self, t: -honest(self, t)),
        ("tilted_cov", lambda honest: lambda self, t: honest(self, t).triu()),
        ("sample", lambda honest: lambda self, n, g: honest(self, n, g).mT),
        ("sample", lambda honest: lambda self, n, g: torch.rand(n, self.dim)),
    ],
)
def test_contract_refuses_a_lie_in_any_method(method, lie, monkeypatch):
    measure = specimen("gaussian").measure
    assert_is_measure(measure, tilts(measure))
    monkeypatch.setattr(Gaussian, method, lie(getattr(Gaussian, method)))
    with pytest.raises((AssertionError, RuntimeError)):
        assert_is_measure(measure, tilts(measure))
