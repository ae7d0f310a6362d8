import dataclasses
import math

import numpy as np
import pytest
import torch

from largeprompt.icl.curves import CurveSettings, training_curves, worker_pool
from largeprompt.icl.linear import linear_optimum, linear_risk, reading_head
from largeprompt.icl.parameters import Separate
from largeprompt.icl.population import population_risk
from largeprompt.icl.presets import decaying_cov
from largeprompt.icl.tasks import RegressionTask

DIM = 2
EYE = torch.eye(DIM, dtype=torch.float64)
TASK = RegressionTask(decaying_cov(DIM, 0.5), EYE, EYE / DIM, noise_variance=0.1)
FACTOR = 1 / math.sqrt(DIM + 1)
SETTINGS = CurveSettings(
    task=TASK,
    start=Separate.draw(DIM, torch.Generator().manual_seed(5)),
    logit_factor=FACTOR,
    times=(0.0, 5.0, 100.0),
    seed=3,
    points=1024,
    fresh_points=2**14,
)
LENGTHS = (12, 150)


@pytest.fixture(scope="module")
def curves():
    return {
        (curve.attention, curve.n): curve
        for curve in training_curves(SETTINGS, LENGTHS)
    }


@pytest.mark.parametrize("n", LENGTHS)
def test_linear_curves_end_at_the_optimum(curves, n):
    best = linear_risk(TASK, n, *reading_head(linear_optimum(TASK, n)))
    curve = curves["linear", n]
    assert abs(curve.risk[-1] / float(best) - 1) < 1e-4
    assert (curve.relative_error == 0).all()


@pytest.mark.parametrize("n", LENGTHS)
def test_softmax_risks_agree_with_other_points_within_the_stated_errors(curves, n):
    curve = curves["softmax", n]
    reference = population_risk(TASK, n, torch.Generator().manual_seed(99))
    end = curve.trajectory.parameters[-1].merge(FACTOR)
    theirs = reference.estimate(end.bilinear, end.value, confidence=1 - 1e-6)
    ours = curve.relative_error[-1] * curve.risk[-1]
    assert abs(theirs.value - curve.risk[-1]) < theirs.radius + 5 * ours
    assert (curve.relative_error < 0.02).all()


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_risks_decrease_along_training_and_with_the_length(curves, attention):
    short, long = (curves[attention, n].risk for n in LENGTHS)
    assert (np.diff(short) < 0).all()
    assert (np.diff(long) < 0).all()
    assert long[-1] < short[-1]
    assert long[-1] > TASK.target_noise_variance


def test_softmax_tends_to_linear_attention_as_prompts_grow():
    settings = dataclasses.replace(SETTINGS, times=(20.0,))
    softmax, linear = training_curves(settings, [10**7])
    assert abs(softmax.risk[0] / linear.risk[0] - 1) < 1e-4


def test_progress_counts_the_curves():
    seen = []
    settings = dataclasses.replace(SETTINGS, times=(0.1,))
    training_curves(settings, [30], progress=lambda *state: seen.append(state))
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.slow
def test_two_processes_find_the_numbers_of_one(curves):
    with worker_pool(2) as pool:
        shared = training_curves(SETTINGS, LENGTHS, pool=pool)
    for curve in shared:
        alone = curves[curve.attention, curve.n]
        np.testing.assert_allclose(curve.risk, alone.risk, rtol=1e-9)
