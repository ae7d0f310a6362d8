import math

import pytest

from largeprompt.audit import AuditResult
from largeprompt.audit.profiles import TOKEN_LISTS
from largeprompt.errors import TextError
from largeprompt.hf import Text, audit_model, cost, estimate, load_text
from tests.hf.tiny import tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()


def test_audit_of_a_model_covers_every_head_and_length(tmp_path):
    model = tiny_model("gemma3")
    result = audit_model(model, TOKENIZER, load_text("prose"), [150, 75], queries=5)
    table = result.heads.to_pydict()
    assert result.heads.num_rows == 3 * 6 * 2
    assert table["layer"] == sorted(table["layer"])
    assert set(table["n"]) == {75, 150}
    assert result.manifest["model"]["kv_heads"] == 2
    assert result.manifest["text"]["tokens"] == 150
    result.save(tmp_path / "audit")
    assert AuditResult.load(tmp_path / "audit").heads.equals(result.heads)


def test_audit_is_the_same_twice():
    model, text = tiny_model("llama"), "The same text. " * 20
    one, two = (audit_model(model, TOKENIZER, text, [50, 99]) for _ in range(2))
    assert one.heads.equals(two.heads)
    assert one.manifest["model"] == two.manifest["model"]


def test_lengths_beyond_the_context_are_refused():
    with pytest.raises(ValueError, match=r"at most 300 \(the model's context\)"):
        audit_model(tiny_model("llama"), TOKENIZER, "text " * 100, [301])


def test_wrong_queries_and_eps_are_refused_before_the_model_runs():
    model = tiny_model("llama")
    model.base_model.forward = None
    with pytest.raises(ValueError, match="queries must be at least 1"):
        audit_model(model, TOKENIZER, "text " * 100, [75], queries=0)
    with pytest.raises(ValueError, match="eps must be a positive number"):
        audit_model(model, TOKENIZER, "text " * 100, [75], eps=-1.0)


def test_a_text_shorter_than_the_longest_length_is_refused():
    with pytest.raises(TextError, match="brief has 5 tokens; the longest prompt needs"):
        audit_model(tiny_model("llama"), TOKENIZER, Text("brief", "brief"), [75])


def test_long_characters_do_not_make_a_text_short():
    assert len(TOKENIZER("x" * 2000)["input_ids"]) == 2000
    audit_model(tiny_model("llama"), TOKENIZER, "x" * 75, [75], queries=2)


def test_estimate_scales_three_measurements_with_the_lengths(monkeypatch):
    monkeypatch.setattr(cost, "forward_seconds", lambda model, n: 1.0)
    monkeypatch.setattr(cost, "layer_seconds", lambda shape, n, queries: 1 + 1e-3 * n)
    model = tiny_model("llama")
    brief, long = estimate(model, [16]), estimate(model, [64, 96, 128])
    layers = 3
    assert brief.seconds == pytest.approx(1 + layers * 1.016)
    assert long.seconds == pytest.approx(1 + layers * 3.288)
    assert 0 < brief.peak_bytes < long.peak_bytes
    assert estimate(model, [16], texts=2).seconds == pytest.approx(2 * brief.seconds)
    first = estimate(model, [16], layers=[0])
    assert first.seconds == pytest.approx(brief.seconds / 3)
    sliding = estimate(tiny_model("mistral"), [16, 128])
    assert sliding.seconds == pytest.approx(1 + layers * (1.016 + 1.024))


def test_estimate_measures_the_model_at_hand():
    model = tiny_model("gemma3")
    assert 0 < estimate(model, [64, 128, 300]).seconds < math.inf
    with pytest.raises(ValueError, match="at most 300"):
        estimate(model, [301])


def test_built_in_texts_are_long_and_the_same_twice():
    for name in ("prose", "code"):
        assert len(load_text(name).content) > 100_000
        assert load_text(name).sha256 == load_text(name).sha256


def test_a_text_comes_from_a_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("Grüße", "utf-8")
    assert load_text(str(path)).content == "Grüße"


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"\xff\xfe\x00", "is not UTF-8"), (b" \n", "is empty"), (None, "no text at")],
)
def test_files_that_are_no_text_are_refused(tmp_path, content, reason):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TextError, match=reason):
        load_text(str(path))


def test_lists_of_tokens_say_what_the_tokens_are():
    text = load_text("prose")
    result = audit_model(tiny_model("llama"), TOKENIZER, text, [40, 80], queries=5)
    ids = TOKENIZER(text.content)["input_ids"]
    kinds = {kind.name for kind in TOKEN_LISTS}
    assert result.profiles is not None
    curves = result.profiles.to_pylist()
    assert {curve["profile"] for curve in curves if curve["labels"]} == kinds
    for curve in curves:
        if curve["profile"] in kinds:
            words = [TOKENIZER.decode([ids[int(x)]]) for x in curve["x"]]
            assert curve["labels"] == words
