"""Keys before rotary embedding: overheard, and nothing is changed by it."""

import contextlib
import sys

import pytest
import torch

from largeprompt.audit import Question
from largeprompt.hf import capture as module
from largeprompt.hf.attention import LayerRecord
from largeprompt.hf.rotary import NAME, before_rotary
from tests.hf.architectures import EVERY, tiny_base
from tests.hf.tiny import CONFIGS, tokens

ROTARY = set(EVERY) - {"gpt2", "bert"}


@contextlib.contextmanager
def projected(model, name):
    """What the named modules of each layer answer: the keys by another route."""
    found, handles = [], []
    for path, part in model.named_modules():
        if path.endswith(name):
            hook = part.register_forward_hook(
                lambda _, __, answer: found.append(answer)
            )
            handles.append(hook)
    yield found
    for handle in handles:
        handle.remove()


def records(model, monkeypatch):
    found: list[LayerRecord] = []

    def remember(record, *_):
        found.append(record)
        return [{}]

    monkeypatch.setattr(module, "record_rows", remember)
    module.capture(model, tokens(60), Question([60], 4, 0.1))
    return found


@pytest.mark.parametrize("name", ["llama", "gemma3", "qwen3", "phi", "gemma2"])
def test_keys_before_rotary_are_those_of_the_projection(name, monkeypatch):
    model = tiny_base(EVERY[name])
    normed = name in ("gemma3", "qwen3")
    with projected(model, "k_norm" if normed else "k_proj") as keys:
        found = records(model, monkeypatch)
    for record, key in zip(found, keys, strict=True):
        width = record.key.shape[-1]
        expected = key[0].reshape(-1, 60, width) if name == "gemma3" else key[0]
        if expected.ndim == 2 or name == "qwen3":
            expected = expected.reshape(60, -1, width).transpose(0, 1)
        assert record.before is not None
        assert torch.equal(record.before, expected)
        assert not torch.allclose(record.before[:, 1:], record.key[:, 1:])
        torch.testing.assert_close(record.before[:, 0], record.key[:, 0])  # no turn


@pytest.mark.parametrize("name", sorted(EVERY))
def test_keys_before_rotary_are_known_where_there_is_one(name, monkeypatch):
    found = records(tiny_base(EVERY[name]), monkeypatch)
    assert all((record.before is not None) == (name in ROTARY) for record in found)


def test_keys_that_attention_does_not_get_are_not_told():
    model = tiny_base(CONFIGS["llama"])
    rotate = sys.modules[type(model).__module__].__dict__
    honest, key = rotate[NAME], torch.randn(1, 2, 7, 10)
    angle = torch.randn(1, 7, 10)
    with before_rotary(model) as overheard:
        assert overheard(key) is None
        _, rotated = rotate[NAME](key, key, angle.cos(), angle.sin())
        assert overheard(rotated) is key
        rotate[NAME](key, key, angle.cos(), angle.sin())
        assert overheard(rotated + 1) is None
        assert overheard(rotated) is None
    assert rotate[NAME] is honest


def test_a_model_computes_the_same_bits_while_its_keys_are_overheard():
    model = tiny_base(CONFIGS["llama"])
    with torch.inference_mode():
        alone = model(tokens(50)[None]).last_hidden_state
        with before_rotary(model):
            beside = model(tokens(50)[None]).last_hidden_state
    assert torch.equal(alone, beside)


def test_the_functions_are_restored_whatever_happens():
    model = tiny_base(CONFIGS["llama"])
    modeling = sys.modules[type(model).__module__]
    honest = modeling.__dict__[NAME]
    with contextlib.suppress(RuntimeError), before_rotary(model):
        assert modeling.__dict__[NAME] is not honest
        raise RuntimeError
    assert modeling.__dict__[NAME] is honest
