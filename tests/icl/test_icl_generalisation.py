"""A head at lengths and on tasks that it was not trained for."""

import dataclasses
import math

import pytest
import torch

from largeprompt.icl import (
    label_blind_risk,
    length_curve,
    linear_optimum,
    linear_risk,
    preset,
    reading_head,
)

TASK = preset("paper-intended").task
LENGTHS = [5, 20, 80, 2000, math.inf]
TRAINED = reading_head(linear_optimum(TASK, 20))


def curve(task):
    generator = torch.Generator().manual_seed(0)
    return length_curve(task, *TRAINED, LENGTHS, generator, count=2048)


@pytest.mark.parametrize("scale", [1.0, 1.3])
def test_length_curve_is_that_of_one_integral_on_the_task_of_the_test(scale):
    shifted = dataclasses.replace(TASK, token_cov=scale * TASK.token_cov)
    ours = curve(shifted)
    for n, risk in zip(LENGTHS, ours.softmax, strict=True):
        exact = label_blind_risk(shifted, n, *TRAINED).value
        assert risk.value == pytest.approx(exact, rel=5e-3)
        assert risk.relative_error < 1e-2
    assert ours.softmax[-1].value == pytest.approx(ours.limit)


def test_longer_prompts_than_trained_on_tend_to_the_limit_of_linear_attention():
    ours = curve(TASK)
    risks = [risk.value for risk in ours.softmax]
    assert risks == sorted(risks, reverse=True)
    assert list(ours.linear) == sorted(ours.linear, reverse=True)
    assert ours.linear[-1] == ours.limit
    assert risks[3] == pytest.approx(ours.linear[3], rel=0.2)
    assert risks[0] > 1.5 * risks[-1]
    assert ours.linear[0] == float(linear_risk(TASK, 5, *TRAINED))


def test_length_curve_refuses_a_length_below_one():
    with pytest.raises(ValueError, match="n must be"):
        length_curve(TASK, *TRAINED, [0], torch.Generator(), count=16)
