import pytest
import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface

from largeprompt.errors import UnsupportedModelError
from largeprompt.hf.attention import check_supported, recording
from tests.hf.tiny import CONFIGS, tiny_model, tokens


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CONFIGS)
def test_recording_leaves_the_logits_bit_equal_to_sdpa(name, dtype):
    model = tiny_model(name, dtype)
    ids = tokens(75)[None]
    model.set_attn_implementation("sdpa")
    with torch.inference_mode():
        before = model(input_ids=ids).logits
        with recording(model, lambda record: None):
            during = model(input_ids=ids).logits
        after = model(input_ids=ids).logits
    assert torch.equal(before, during)
    assert torch.equal(before, after)


@pytest.mark.parametrize("name", CONFIGS)
def test_recording_hands_over_every_layer_before_heads_are_repeated(name):
    model, records = tiny_model(name), []
    with torch.inference_mode(), recording(model, records.append):
        model(input_ids=tokens(41)[None])
    assert [record.layer for record in records] == [0, 1, 2]
    for record in records:
        assert record.query.shape == (6, 41, 10)
        assert record.key.shape == record.value.shape == (2, 41, 10)
        assert record.output.shape == (6, 41, 10)
        assert record.scale == (13 if name == "gemma3" else 10) ** -0.5


def names():
    return set(AttentionInterface()), set(AttentionMaskInterface())


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_recording_restores_what_was_there_after_an_error(implementation):
    model, before = tiny_model("llama"), names()
    model.set_attn_implementation(implementation)
    with pytest.raises(KeyboardInterrupt), recording(model, lambda record: None):
        raise KeyboardInterrupt
    assert model.config._attn_implementation == implementation
    assert names() == before


def test_recordings_of_two_models_do_not_mix():
    one, two, seen = tiny_model("llama"), tiny_model("qwen3"), {"one": 0, "two": 0}

    def count(name):
        def recorder(record):
            seen[name] += 1

        return recorder

    with torch.inference_mode(), recording(one, count("one")):
        with recording(two, count("two")):
            one(input_ids=tokens(9)[None])
        two(input_ids=tokens(9)[None])
    assert seen == {"one": 3, "two": 0}


def test_recording_refuses_a_batch_and_padding():
    model = tiny_model("llama")
    ids = tokens(20).view(2, 10)
    with recording(model, lambda record: None):
        with pytest.raises(UnsupportedModelError, match="a batch of 2"):
            model(input_ids=ids)
        for mask in (torch.arange(10) < 7, torch.arange(10) >= 3):
            with pytest.raises(UnsupportedModelError, match="padding"):
                model(input_ids=ids[:1], attention_mask=mask[None].long())


def test_recording_refuses_one_token_against_a_cache():
    model = tiny_model("llama")
    with (
        recording(model, lambda record: None),
        pytest.raises(UnsupportedModelError, match="in one pass"),
    ):
        model.generate(tokens(9)[None], max_new_tokens=2, do_sample=False)


class FourthLayer(nn.Module):
    layer_idx = 4


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"softcap": 50.0}, "softcap"),
        ({"s_aux": torch.zeros(1)}, "s_aux"),
        ({"position_bias": torch.zeros(1)}, "position_bias"),
        ({"is_causal": False}, "not causal"),
        ({"dropout": 0.1}, "drops weights out"),
    ],
)
def test_recording_refuses_what_it_does_not_handle(options, reason):
    module = FourthLayer()
    head = torch.zeros(1, 1, 3, 2)
    check_supported(module, head, head, None, {"scaling": 1.0, "sliding_window": 3})
    with pytest.raises(UnsupportedModelError, match=reason):
        check_supported(module, head, head, None, options)


def test_recording_refuses_a_layer_without_a_number():
    head = torch.zeros(1, 1, 3, 2)
    with pytest.raises(UnsupportedModelError, match="does not say which layer"):
        check_supported(nn.Module(), head, head, None, {})
