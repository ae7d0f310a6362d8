import numpy as np
import pytest
import torch

from largeprompt.measures import Gaussian, Measure, autodiff
from largeprompt.testing import assert_is_measure, close
from tests.measures.zoo import NAMES, Specimen, moments, specimen, tilts

DTYPES = [torch.float64, torch.float32]


def assert_agrees_with_its_nodes(subject: Specimen, t: torch.Tensor) -> None:
    points = t.reshape(-1, subject.measure.dim)
    expected = [moments(subject.nodes, point.numpy()) for point in points]
    tensor = lambda rows: torch.tensor(np.array(rows), dtype=t.dtype)
    close(subject.measure.log_mgf(points), tensor([e.log_mgf for e in expected]))
    close(subject.measure.tilted_mean(points), tensor([e.mean for e in expected]))
    close(subject.measure.tilted_cov(points), tensor([e.cov for e in expected]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_measure_satisfies_the_contract(name, dtype):
    measure = specimen(name, dtype).measure
    assert_is_measure(measure, tilts(measure, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_measure_agrees_with_quadrature_or_enumeration(name, dtype):
    subject = specimen(name, dtype)
    assert_agrees_with_its_nodes(subject, tilts(subject.measure, dtype))


def test_zoo_holds_every_kind_of_measure():
    ours = {
        kind
        for kind in Measure.__subclasses__()
        if kind.__module__.startswith("largeprompt.")
    }
    assert {type(specimen(name).measure) for name in NAMES} == ours


@pytest.mark.parametrize("name", NAMES)
def test_measure_answers_a_single_tilt_as_it_answers_a_batch(name):
    measure = specimen(name).measure
    t = tilts(measure)
    close(measure.log_mgf(t[1, 1]), measure.log_mgf(t)[1, 1])
    close(measure.tilted_mean(t[1, 1]), measure.tilted_mean(t)[1, 1])
    close(measure.tilted_cov(t[1, 1]), measure.tilted_cov(t)[1, 1])


@pytest.mark.parametrize("name", NAMES)
def test_measure_has_right_gradients_of_its_moments_at_zero_and_elsewhere(name):
    measure = specimen(name).measure
    for t in tilts(measure)[0].clone().requires_grad_():
        for moment in (measure.log_mgf, measure.tilted_mean, measure.tilted_cov):
            torch.autograd.gradcheck(moment, t)
            if moment(t).requires_grad:  # a Gaussian's covariance is constant
                torch.autograd.gradgradcheck(moment, t, fast_mode=True)


@pytest.mark.parametrize("name", NAMES)
def test_contract_refuses_a_mean_that_is_off_by_a_thousandth(name, monkeypatch):
    measure = specimen(name).measure
    honest = type(measure).tilted_mean
    monkeypatch.setattr(
        type(measure), "tilted_mean", lambda self, t: 1.001 * honest(self, t)
    )
    with pytest.raises(AssertionError):
        assert_is_measure(measure, tilts(measure))


@pytest.mark.parametrize("name", sorted({*NAMES} - {"prompt-of-one-number"}))
def test_contract_refuses_a_covariance_that_is_off_by_a_thousandth(name, monkeypatch):
    measure = specimen(name).measure
    honest = type(measure).tilted_cov
    monkeypatch.setattr(
        type(measure), "tilted_cov", lambda self, t: 1.001 * honest(self, t)
    )
    with pytest.raises(AssertionError):
        assert_is_measure(measure, tilts(measure))


@pytest.mark.parametrize("name", NAMES)
def test_quadrature_refuses_a_consistent_law_that_is_not_this_one(name, monkeypatch):
    subject = specimen(name)
    kind, t = type(subject.measure), tilts(subject.measure)
    honest = kind.log_mgf
    monkeypatch.setattr(kind, "log_mgf", lambda self, t: honest(self, 1.001 * t))
    monkeypatch.setattr(kind, "tilted_mean", autodiff.tilted_mean)
    monkeypatch.setattr(kind, "tilted_cov", autodiff.tilted_cov)
    assert_is_measure(subject.measure, t)
    with pytest.raises(AssertionError):
        assert_agrees_with_its_nodes(subject, t)


def test_autodiff_is_a_fallback_that_can_be_differentiated_again():
    gaussian = specimen("gaussian").measure
    assert isinstance(gaussian, Gaussian)
    t = tilts(gaussian)[1].clone().requires_grad_()
    torch.autograd.gradcheck(lambda s: autodiff.tilted_mean(gaussian, s), t)
    jacobian = torch.func.jacrev(lambda s: autodiff.tilted_mean(gaussian, s))(t[0])
    close(jacobian, gaussian.cov)
