"""The experiments of the lab as cells: what they compute, and what they share."""

import math

import pytest

from largeprompt.experiments.sweep import Key
from largeprompt.experiments.sweep.lab.audit import AuditCell
from largeprompt.experiments.sweep.lab.concentration import ConcentrationCell
from largeprompt.experiments.sweep.lab.flow import FlowCell
from largeprompt.experiments.sweep.lab.law import LawCell
from largeprompt.experiments.sweep.lab.population import PopulationCell
from largeprompt.experiments.sweep.lab.training import TrainingCell
from largeprompt.experiments.sweep.specification import plain
from largeprompt.hf import audit_model, load_model, load_text
from largeprompt.icl import checkpoint
from tests.hf.tiny import tiny_model, tiny_tokenizer


def rows_of(cell, keep):
    return cell.rows(Key.of(plain(cell)), keep)


@pytest.mark.parametrize("text", ["code", "prose"])
def test_an_audit_as_a_cell_has_the_rows_of_the_audit(text, tmp_path):
    tiny_model("llama").save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    cell = AuditCell(str(tmp_path / "model"), text, lengths=(30, 60), queries=4)
    model, tokenizer, _ = load_model(cell.model)
    audit = audit_model(model, tokenizer, load_text(text), (30, 60), queries=4)
    assert rows_of(cell, tmp_path) == audit.heads.to_pylist()


def test_the_law_of_a_cell_lets_one_token_weigh_all_and_many_weigh_little(tmp_path):
    (one,) = rows_of(LawCell(1, 2.0), tmp_path)
    assert one["inverse_ess"] == 1
    (flat,) = rows_of(LawCell(40, 0.0), tmp_path)
    assert flat["inverse_ess"] == pytest.approx(1 / 40, rel=1e-12)


def test_concentration_asks_the_same_head_at_every_length_and_another_each_seed(
    tmp_path,
):
    def exact(n: int, seed: int) -> float:
        rows = rows_of(
            ConcentrationCell("gaussian", n, seed, queries=3, prompts=2), tmp_path
        )
        return next(row["exact"] for row in rows if row["quantity"] == "output")

    # far out the error is c/n, and c is the head's
    constants = [exact(n, 0) * n for n in (10**4, 3 * 10**4)]
    assert constants[0] == pytest.approx(constants[1], rel=1e-3)
    assert exact(10**4, 1) * 10**4 != pytest.approx(constants[0], rel=1e-3)


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_training_goes_on_from_its_checkpoints_to_the_same_bits(
    attention, tmp_path, monkeypatch
):
    cell = TrainingCell(
        "he-et-al", 20, attention, steps=30, stretches=3, batch=8, checkpoint_every=10
    )
    whole = rows_of(cell, tmp_path / "whole")

    step, written = checkpoint._replace, []

    def replace(path, content):
        step(path, content)
        written.append(path.name)
        if written.count("state.safetensors") == 2:
            raise KeyboardInterrupt  # right after the second checkpoint

    monkeypatch.setattr(checkpoint, "_replace", replace)
    with pytest.raises(KeyboardInterrupt):
        rows_of(cell, tmp_path / "broken")
    monkeypatch.setattr(checkpoint, "_replace", step)
    assert rows_of(cell, tmp_path / "broken") == whole
    assert [row["step"] for row in whole] == [10, 20, 30]


def risks(n, keep, draws):
    cell = PopulationCell("he-et-al", n, logit_scale=0.05, points=256, draws=draws)
    return {row["predictor"]: row["risk"] for row in rows_of(cell, keep)}


def test_population_risks_are_ordered_and_meet_at_long_prompts(tmp_path):
    short, long = risks(20, tmp_path, 64), risks(10**9, tmp_path, 0)
    assert short["least"] < short["linear"]
    assert short["least"] < short["softmax"]
    assert set(long) == {"softmax", "linear"}
    assert long["softmax"] == pytest.approx(long["linear"], rel=1e-3)


def test_flows_of_both_attentions_start_at_one_head_and_descend(tmp_path):
    curves = [
        rows_of(
            FlowCell(
                "he-et-al",
                10**6,
                attention,
                time=2.0,
                checkpoints=3,
                points=64,
                fresh_points=1024,
            ),
            tmp_path,
        )
        for attention in ("softmax", "linear")
    ]
    assert [row["t"] for row in curves[0]] == [row["t"] for row in curves[1]]
    for softmax, linear in zip(*curves, strict=True):
        assert softmax["risk"] == pytest.approx(linear["risk"], rel=0.05)
    for curve in curves:
        assert curve[-1]["risk"] < curve[0]["risk"]


@pytest.mark.parametrize(
    ("cell", "options", "message"),
    [
        (ConcentrationCell, {"law": "cube", "n": 0}, "n must be at least 1"),
        (ConcentrationCell, {"law": "cube", "n": 1, "value_norm": 0.0}, "above 0"),
        (LawCell, {"n": 1, "logit_variance": 401.0}, "must be from 0 to 400"),
        (PopulationCell, {"preset": "he-et-al", "n": 9, "points": 3}, "power of two"),
        (FlowCell, {"preset": "he-et-al", "n": 9, "points": 3}, "power of two"),
        (TrainingCell, {"preset": "he-et-al", "n": 9, "steps": 7}, "multiple of"),
        (TrainingCell, {"preset": "he-et-al", "n": 9, "rate": math.nan}, "above 0"),
        (AuditCell, {"model": "smollm2", "lengths": ()}, "lengths must be"),
    ],
)
def test_options_out_of_range_are_refused_before_anything_is_computed(
    cell, options, message
):
    with pytest.raises(ValueError, match=message):
        cell(**options)
