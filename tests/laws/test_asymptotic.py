"""The delta method's scalars against the exact law."""

import math

import pytest

from largeprompt.laws import gaussian_law, linear_length
from largeprompt.laws.asymptotic import DeltaMethod
from largeprompt.laws.status import Status


@pytest.mark.parametrize("logit_variance", [0.0, 0.5, 1.0, 2.0])
def test_delta_method_agrees_with_the_exact_law_of_a_long_prompt(logit_variance):
    n = 1e13
    delta = DeltaMethod(n, logit_variance, spread=1.0, shift=logit_variance)
    law = gaussian_law(n, logit_variance)
    assert delta.inverse_ess == pytest.approx(float(law.inverse_ess), rel=1e-6)
    assert delta.mean_square_error == pytest.approx(float(law.parallel_mse), rel=1e-6)
    bias = float(law.inverse_ess) * math.sqrt(logit_variance)
    assert delta.bias == pytest.approx(bias, rel=1e-6)


def test_delta_method_is_far_off_below_its_reliable_length():
    delta = DeltaMethod(4096, 9.0, spread=1.0, shift=9.0)
    law = gaussian_law(4096, 9.0)
    assert delta.n < delta.reliable_from == linear_length(9.0)
    assert delta.inverse_ess / law.inverse_ess == pytest.approx(25, abs=0.5)
    assert delta.mean_square_error / law.parallel_mse == pytest.approx(102, abs=1)


def test_delta_method_says_that_it_is_asymptotic():
    assert DeltaMethod(10, 1.0, 1.0, 1.0).status is Status.ASYMPTOTIC


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 1, 1, 1), "n"),
        ((10, -1, 1, 1), "excess"),
        ((10, math.inf, 1, 1), "excess"),
        ((10, 1, math.nan, 1), "spread"),
        ((10, 1, 1, -1), "shift"),
    ],
)
def test_delta_method_refuses_what_is_out_of_range(arguments, name):
    with pytest.raises(ValueError, match=f"^{name} must be"):
        DeltaMethod(*arguments)
