import dataclasses

import pytest
import torch
from transformers import Llama4TextConfig
from transformers.masking_utils import sdpa_mask

from largeprompt.errors import ParityError, UnsupportedModelError
from largeprompt.hf import attention
from largeprompt.hf import capture as module
from largeprompt.hf.capture import Question, capture
from largeprompt.hf.windows import documented_window
from tests.hf.tiny import CONFIGS, SHAPE, tiny_model, tokens

QUESTION = Question(lengths=[40, 75], queries=9, eps=0.1)


@pytest.mark.parametrize("name", CONFIGS)
def test_recomputed_outputs_are_the_models_own(name):
    rows = capture(tiny_model(name), tokens(75), QUESTION)
    assert len(rows) == 3 * 6 * 2
    assert all(0 < row["parity_error"] < 1e-6 for row in rows)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_as_good_as_sdpa_itself(name, dtype):
    rows = capture(tiny_model(name, dtype), tokens(75), QUESTION)
    assert all(row["parity_error"] < torch.finfo(dtype).eps for row in rows)


def test_sliding_layers_are_audited_with_their_window():
    rows = capture(tiny_model("gemma3"), tokens(75), QUESTION)
    windows = {row["layer"]: (row["window"], row["effective_n"]) for row in rows}
    assert windows == {0: (24, 24), 1: (None, 75), 2: (24, 24)}


def test_shorter_lengths_are_what_a_shorter_prompt_gives():
    model = tiny_model("mistral")
    within = [row for row in capture(model, tokens(75), QUESTION) if row["n"] == 40]
    alone = capture(model, tokens(75)[:40], dataclasses.replace(QUESTION, lengths=[40]))
    for one, other in zip(within, alone, strict=True):
        assert one["logit_variance"] == pytest.approx(other["logit_variance"], rel=1e-4)
        assert one["head"] == other["head"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_swapped_heads_fail_parity(monkeypatch, dtype):
    honest = attention.layer_record

    def swapped(*arguments):
        record = honest(*arguments)
        order = [0, 4, 2, 3, 1, 5]
        return dataclasses.replace(record, query=record.query[order])

    monkeypatch.setattr(attention, "layer_record", swapped)
    with pytest.raises(ParityError, match="layer 0, head 1"):
        capture(tiny_model("llama", dtype), tokens(75), QUESTION)


@pytest.mark.parametrize("name", ["mistral", "gemma3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_dropped_window_fails_parity(monkeypatch, name, dtype):
    monkeypatch.setattr(module, "documented_window", lambda config, layer: None)
    with pytest.raises(ParityError, match="layer 0, head 0"):
        capture(tiny_model(name, dtype), tokens(75), QUESTION)


def test_a_model_that_drops_its_window_fails_parity(monkeypatch):
    def causal(**options):
        options.pop("mask_function")
        return sdpa_mask(**options)

    dropped = dataclasses.replace(attention.SDPA, mask=causal)
    monkeypatch.setattr(module, "STREAMED", dropped)
    with pytest.raises(ParityError, match="layer 0, head 0"):
        capture(tiny_model("mistral"), tokens(75), QUESTION)


def test_scaled_logits_fail_parity(monkeypatch):
    honest = attention.layer_record
    monkeypatch.setattr(
        attention,
        "layer_record",
        lambda *a: dataclasses.replace(honest(*a), scale=0.999 * honest(*a).scale),
    )
    with pytest.raises(ParityError, match="layer 0"):
        capture(tiny_model("qwen3"), tokens(75), QUESTION)


def test_chunked_masks_are_refused():
    config = Llama4TextConfig(**SHAPE, num_local_experts=2)
    with pytest.raises(UnsupportedModelError, match="chunked_attention"):
        documented_window(config, 0)


def test_progress_counts_layers():
    seen = []
    capture(tiny_model("llama"), tokens(75), QUESTION, lambda *done: seen.append(done))
    assert seen == [(1, 3), (2, 3), (3, 3)]
