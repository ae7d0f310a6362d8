"""Faults planted in the library, each seen by the oracle that is there to see it."""

import dataclasses

import pytest
import torch

from largeprompt.errors import ParityError
from largeprompt.hf import attention, capture
from largeprompt.hf.capture import Question
from largeprompt.laws import exact
from largeprompt.measures import Gaussian
from largeprompt.testing import assert_is_measure
from tests.hf.tiny import tiny_model, tokens
from tests.laws import test_exact

QUESTION = Question(lengths=[75], queries=9, eps=0.1)


def test_a_tilted_mean_off_by_a_thousandth_breaks_the_measure_contract(monkeypatch):
    measure = Gaussian(
        torch.tensor([1.0, -2.0], dtype=torch.float64),
        torch.eye(2, dtype=torch.float64),
    )
    tilts = torch.tensor([[0.3, 0.4]], dtype=torch.float64)
    assert_is_measure(measure, tilts)
    honest = Gaussian.tilted_mean
    monkeypatch.setattr(
        Gaussian, "tilted_mean", lambda self, t: 1.001 * honest(self, t)
    )
    with pytest.raises(AssertionError, match="not close"):
        assert_is_measure(measure, tilts)


@pytest.mark.parametrize("faulty", [0, 1, 2])
def test_a_law_off_by_a_thousandth_disagrees_with_mpmath(monkeypatch, faulty):
    row = next(r for r in test_exact.ROWS if r["n"] == 100 and r["logit_variance"] == 1)
    test_exact.test_law_agrees_with_mpmath(row)
    honest = exact._moments

    def scaled(n, logit_variance):
        values = list(honest(n, logit_variance))
        values[faulty] *= 1.001
        return tuple(values)

    monkeypatch.setattr(exact, "_moments", scaled)
    with pytest.raises(AssertionError):
        test_exact.test_law_agrees_with_mpmath(row)


@pytest.mark.parametrize("field", ["query", "key"])
def test_two_heads_swapped_fail_parity_with_the_model(monkeypatch, field):
    honest = attention.layer_record

    def swapped(*arguments):
        record = honest(*arguments)
        heads = getattr(record, field)
        order = [len(heads) - 1, *range(1, len(heads) - 1), 0]
        return dataclasses.replace(record, **{field: heads[order]})

    monkeypatch.setattr(attention, "layer_record", swapped)
    with pytest.raises(ParityError, match="layer 0, head 0"):
        capture.capture(tiny_model("llama"), tokens(75), QUESTION)


def test_a_sliding_window_dropped_fails_parity_with_the_model(monkeypatch):
    monkeypatch.setattr(capture, "documented_window", lambda config, layer: None)
    with pytest.raises(ParityError, match="layer 0, head 0"):
        capture.capture(tiny_model("mistral"), tokens(75), QUESTION)
