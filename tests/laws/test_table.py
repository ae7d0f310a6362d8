"""Tables of the law reproduce the law."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from largeprompt.laws import gaussian_law, law_table

PROMISED = 1e-8


@pytest.mark.parametrize("n", [1, 1.5, 2, 300, 1e6, 1e15])
@pytest.mark.parametrize("top", [1e-6, 3.0, 36.0, 400.0])
def test_table_reproduces_the_law(n, top):
    table = law_table(n, top)
    variances = top * np.random.default_rng(3).uniform(size=40)
    ours, exact = table(variances), gaussian_law(n, variances)
    for field in ("inverse_ess", "parallel_mse", "parallel_excess"):
        np.testing.assert_allclose(
            getattr(ours, field), getattr(exact, field), rtol=PROMISED, err_msg=field
        )
    np.testing.assert_allclose(
        ours.inverse_ess_slope,
        exact.inverse_ess_slope,
        rtol=PROMISED,
        atol=PROMISED * exact.inverse_ess.max(),
    )


@given(share=st.floats(0, 1), log_n=st.floats(0, math.log(1e15)))
def test_table_answers_in_the_shape_it_is_asked(share, log_n):
    table = law_table(math.exp(log_n), 4.0)
    assert table(4 * share).inverse_ess.shape == ()
    assert table([[4 * share]]).inverse_ess.shape == (1, 1)


def test_table_refuses_what_it_does_not_hold():
    table = law_table(100, 4.0)
    with pytest.raises(ValueError, match="logit_variance must be a number from 0 to 4"):
        table(4.001)
    with pytest.raises(ValueError, match="max_logit_variance must be a number from"):
        law_table(100, 0.0)
    with pytest.raises(ValueError, match="n must be a number from 1"):
        law_table(0, 4.0)
