"""Layers, heads, positions and texts of an audit; models that cannot be audited."""

from typing import Any

import pytest
import torch
from transformers import BloomConfig

from largeprompt.errors import (
    DeviceError,
    NotFiniteError,
    TextError,
    UnsupportedModelError,
)
from largeprompt.hf import Text, audit_model, estimate, load_model
from largeprompt.hf.audit import named_texts
from largeprompt.hf.devices import check_placement, dtype_of
from tests.hf.architectures import ENCODERS, tiny_base
from tests.hf.tiny import tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
TEXT = "Softmax over a long prompt. " * 12


def audited(model, text: Any = TEXT, lengths=(70, 150), **options):
    return audit_model(model, TOKENIZER, text, lengths, **options)


def test_chosen_layers_and_heads_have_the_rows_of_the_whole_audit():
    model = tiny_model("gemma3")
    whole = audited(model).heads.to_pylist()
    some = audited(model, layers=[1, 0, 1], heads=[5, 0]).heads.to_pylist()
    wanted = [r for r in whole if r["layer"] < 2 and r["head"] in (0, 5)]
    assert some == wanted


def test_the_pass_ends_at_the_last_layer_asked_for(monkeypatch):
    model, last = tiny_model("llama"), []
    block = model.base_model.layers[2]
    block.register_forward_pre_hook(lambda *_: last.append(1))
    audited(model, layers=[0, 1])
    assert last == []
    audited(model, layers=[2])
    assert last == [1]


def test_a_seed_draws_other_positions_and_is_recorded():
    model = tiny_model("llama")
    one, two, same = (audited(model, queries=4, seed=s) for s in (1, 2, 1))
    assert one.manifest["seed"] == one.manifest["arguments"]["seed"] == 1
    assert one.heads.equals(same.heads)
    assert not one.heads.equals(two.heads)
    assert audited(model, queries=4).manifest["seed"] is None


def test_texts_are_audited_one_after_the_other():
    model, seen = tiny_model("llama"), []
    texts = [Text("one", TEXT), Text("two", TEXT[::-1])]
    both = audited(model, texts, progress=lambda *done: seen.append(done))
    assert both.texts == ["one", "two"]
    assert seen == [(done, 6) for done in range(1, 7)]
    for text in texts:
        assert both.only(text.name).heads.equals(audited(model, text).heads)
    with pytest.raises(ValueError, match="of different names"):
        audited(model, [texts[0], texts[0]])
    assert [t.name for t in named_texts(["a", "b"])] == ["text 1", "text 2"]


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_reads_a_text_once_a_length(name):
    model = tiny_base(ENCODERS[name])
    both = audited(model, queries=5)
    assert both.heads["n"].to_pylist() == ([70] * 6 + [150] * 6) * 3
    alone = audited(model, lengths=[70], queries=5)
    shorter = [row for row in both.heads.to_pylist() if row["n"] == 70]
    assert shorter == alone.heads.to_pylist()
    assert estimate(model, [70, 150]).seconds > 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"layers": [3]}, "layers must be from 0 to 2; got 3"),
        ({"layers": []}, "layers must name at least one"),
        ({"heads": [-1]}, "heads must be from 0 to 5; got -1"),
        ({"text": []}, "at least one"),
    ],
)
def test_unknown_layers_and_heads_are_refused_before_the_model_runs(options, reason):
    model = tiny_model("llama")
    model.base_model.forward = None
    with pytest.raises(ValueError, match=reason):
        audited(model, **options)


def test_a_text_shorter_than_the_shortest_length_is_refused():
    with pytest.raises(TextError, match="tokens; the longest prompt needs 70"):
        audited(tiny_model("llama"), "brief", lengths=[70])


@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_refused_with_their_layer(number):
    model = tiny_model("llama")
    with torch.no_grad():
        model.base_model.layers[1].self_attn.k_proj.weight[0, 0] = number
    with pytest.raises(NotFiniteError, match=r"layer 1: its (query|key) holds a NaN"):
        audited(model)


def test_a_context_that_the_configuration_does_not_name_is_no_limit():
    config = BloomConfig(hidden_size=36, n_layer=3, n_head=6, vocab_size=256)
    with pytest.raises(UnsupportedModelError):  # its attention, not its length
        audited(tiny_base(config))


def test_devices_that_are_not_there_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match="cuda:1 was asked for, and PyTorch"):
        check_placement("cuda:1")
    with pytest.raises(DeviceError, match="mps computes no float64"):
        check_placement("mps")
    check_placement("auto")
    check_placement(None)


def test_dtypes_go_by_their_names():
    assert dtype_of("bfloat16") is torch.bfloat16
    with pytest.raises(ValueError, match="dtype must be one of float32"):
        dtype_of("int8")


def test_layers_go_where_a_device_map_puts_them(tmp_path):
    tiny_model("llama").save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    placed = load_model(str(tmp_path), device_map="cpu", dtype=torch.float64)
    assert placed.model.dtype is torch.float64
    result = audited(placed.model, description=placed.description)
    assert max(result.heads["parity_error"].to_pylist()) < 1e-12


def test_an_encoder_in_a_folder_is_loaded_without_a_head(tmp_path):
    tiny_base(ENCODERS["bert"]).save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    loaded = load_model(str(tmp_path))
    assert type(loaded.model).__name__ == "BertModel"
    assert audited(loaded.model, lengths=[70]).heads.num_rows == 18
