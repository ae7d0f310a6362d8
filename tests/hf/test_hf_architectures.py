"""Architectures: causal and both ways, windows, soft caps, pads; what is refused."""

import dataclasses

import pytest
import torch
from transformers import BloomConfig, GptOssConfig, MambaConfig
from transformers.masking_utils import sdpa_mask

from largeprompt.errors import ParityError, UnsupportedModelError
from largeprompt.hf import attention, streamed
from largeprompt.hf.attention import SDPA, listening
from largeprompt.hf.capture import STREAMED, Question, capture
from largeprompt.hf.checks import check_attention
from largeprompt.hf.streamed import RowMask, streamed_mask
from tests.hf.architectures import DECODERS, ENCODERS, EVERY, SOFTCAPPED, tiny_base
from tests.hf.tiny import SHAPE, tokens

QUESTION = Question(lengths=[75], queries=9, eps=0.1)
SLIDING = ["mistral", "gemma3", "modernbert"]


def states(model, ids, **options):
    with torch.inference_mode():
        return model(input_ids=ids, **options).last_hidden_state


@pytest.mark.parametrize("name", EVERY)
def test_recomputed_outputs_are_those_of_every_architecture(name):
    rows = capture(tiny_base(EVERY[name]), tokens(75), QUESTION)
    assert len(rows) == 3 * 6
    assert all(0 < row["parity_error"] < 1e-6 for row in rows)


@pytest.mark.parametrize("name", {**DECODERS, **ENCODERS})
def test_listening_leaves_every_architecture_bit_equal_to_sdpa(name):
    model, ids, layers = tiny_base(EVERY[name]), tokens(75)[None], []
    model.set_attn_implementation("sdpa")
    before = states(model, ids)
    with listening(model, lambda r: layers.append(r.layer), SDPA, check_attention):
        during = states(model, ids)
    assert torch.equal(before, during)
    assert layers == [0, 1, 2]


@pytest.mark.parametrize("name", {**DECODERS, **ENCODERS})
def test_streamed_attention_is_sdpa_and_bit_equal_without_a_window(name, monkeypatch):
    monkeypatch.setattr(streamed, "ROWS", 10)  # blocks that do not divide the text
    model, ids = tiny_base(EVERY[name]), tokens(75)[None]
    model.set_attn_implementation("sdpa")
    before = states(model, ids)
    with listening(model, lambda record: None, STREAMED, check_attention):
        during = states(model, ids)
    torch.testing.assert_close(during, before, rtol=1e-4, atol=1e-5 * before.std())
    assert torch.equal(during, before) == (name not in SLIDING)


@pytest.mark.parametrize("name", SLIDING)
def test_masks_of_sliding_layers_are_never_spread_out(name, monkeypatch):
    seen = []

    def masked(*sizes, **options):
        seen.append(streamed_mask(*sizes, **options))
        return seen[-1]

    one = dataclasses.replace(STREAMED, mask=masked)
    model = tiny_base(EVERY[name])
    with listening(model, lambda record: None, one, check_attention):
        states(model, tokens(299)[None])
    masks = [mask for mask in seen if mask is not None]
    assert masks
    for mask in masks:
        assert isinstance(mask, RowMask)
        _, rows = mask.rows(100, 110)
        assert rows.shape[-1] <= 10 + 2 * 25


def test_soft_capped_logits_give_the_eager_output(monkeypatch):
    monkeypatch.setattr(streamed, "ROWS", 10)
    model, ids = tiny_base(SOFTCAPPED), tokens(75)[None]
    model.set_attn_implementation("eager")
    before = states(model, ids)
    with listening(model, lambda record: None, STREAMED, check_attention):
        during = states(model, ids)
    torch.testing.assert_close(during, before, rtol=1e-4, atol=1e-5 * before.std())


@pytest.mark.parametrize(
    ("name", "change"), [("gemma2", {"softcap": None}), ("bert", {"causal": True})]
)
def test_a_dropped_cap_or_direction_fails_parity(monkeypatch, name, change):
    honest = attention.layer_record
    monkeypatch.setattr(
        attention,
        "layer_record",
        lambda *a: dataclasses.replace(honest(*a), **change),
    )
    with pytest.raises(ParityError, match="layer 0, head 0"):
        capture(tiny_base(EVERY[name]), tokens(75), QUESTION)


def test_windows_of_encoders_reach_both_ways():
    rows = capture(tiny_base(ENCODERS["modernbert"]), tokens(75), QUESTION)
    windows = {row["layer"]: (row["window"], row["effective_n"]) for row in rows}
    assert windows == {0: (None, 75), 1: (25, 25), 2: (25, 25)}


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "bert", "modernbert"])
def test_pads_are_no_tokens(name, side):
    model, texts = tiny_base(EVERY[name]), [tokens(41, 1), tokens(60, 2)]
    implementation = STREAMED if name == "gemma2" else SDPA
    alone, batch = {}, {}
    for index, ids in enumerate(texts):

        def keep(record, index=index):
            alone[index, record.layer] = record

        with listening(model, keep, implementation, check_attention):
            states(model, ids[None])
    ids, real = torch.zeros(2, 60).long(), torch.zeros(2, 60).long()
    for index, text in enumerate(texts):
        place = slice(0, len(text)) if side == "right" else slice(60 - len(text), 60)
        ids[index, place], real[index, place] = text, 1

    def together(record):
        batch[record.text, record.layer] = record

    positions = (real.cumsum(-1) - 1).clamp_min(0)
    with listening(model, together, implementation, check_attention):
        states(model, ids, attention_mask=real, position_ids=positions)
    assert alone.keys() == batch.keys()
    for place, record in alone.items():
        for field in ("query", "key", "value", "output"):
            mine, theirs = getattr(batch[place], field), getattr(record, field)
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def test_pads_taken_for_tokens_are_seen_by_that_test(monkeypatch):
    monkeypatch.setattr(attention, "real_tokens", lambda mask, batch: [None] * batch)
    with pytest.raises(AssertionError, match=r"[Ss]hape"):
        test_pads_are_no_tokens("llama", "left")


def test_learned_sinks_are_refused_by_name():
    config = GptOssConfig(**SHAPE, num_local_experts=2, num_experts_per_tok=1)
    with pytest.raises(UnsupportedModelError, match="learned sinks"):
        capture(tiny_base(config), tokens(75), QUESTION)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (
            BloomConfig(hidden_size=36, n_layer=3, n_head=6, vocab_size=256),
            "does not support sdpa|does not let its attention",
        ),
        (
            MambaConfig(hidden_size=36, num_hidden_layers=3, vocab_size=256),
            "does not support sdpa|no attention heads",
        ),
    ],
)
def test_models_without_the_attention_interface_are_refused(config, reason):
    with pytest.raises(UnsupportedModelError, match=reason):
        capture(tiny_base(config), tokens(75), QUESTION)


def test_a_mask_that_reaches_beyond_its_window_is_spread_out():
    def prefix(batch, head, query, key):
        return (key <= query) & ((query - key < 8) | (key < 4))

    options = {"mask_function": prefix, "local_size": 8, "allow_is_causal_skip": False}
    mask, spread = streamed_mask(1, 40, 40, **options), sdpa_mask(1, 40, 40, **options)
    assert isinstance(mask, torch.Tensor)
    assert spread is not None
    assert torch.equal(mask, spread)
