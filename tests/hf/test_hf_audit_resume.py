"""An interrupted audit goes on, layer by layer, to the same table."""

import pytest

from largeprompt.audit import merge_audits
from largeprompt.errors import ResultError
from largeprompt.hf import Text, audit_model, capture
from tests.hf.architectures import ENCODERS, tiny_base
from tests.hf.tiny import tiny_model, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
TEXTS = [Text(name, name * 200) for name in ("one", "two")]


def audited(model, folder=None, **options):
    return audit_model(
        model, TOKENIZER, TEXTS, [40, 75], queries=32, resume_in=folder, **options
    )


@pytest.fixture
def counted(monkeypatch):
    """The layers whose rows are computed, as (layer, text)."""
    seen, honest = [], capture.record_rows

    def rows(record, question, heads, window, text):
        seen.append((record.layer, text))
        return honest(record, question, heads, window, text)

    monkeypatch.setattr(capture, "record_rows", rows)
    return seen


def stopped_after(count):
    def progress(done, total):
        if done == count:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("after", [1, 3, 5])
def test_an_interrupted_audit_goes_on_where_it_stopped(tmp_path, counted, after):
    model = tiny_model("gemma3")
    whole = audited(model)
    counted.clear()
    with pytest.raises(KeyboardInterrupt):
        audited(model, tmp_path / "blocks", progress=stopped_after(after))
    resumed = audited(model, tmp_path / "blocks")
    assert counted == [(layer, text) for text in ("one", "two") for layer in range(3)]
    assert resumed.heads.equals(whole.heads)
    for name in ("model", "texts", "arguments", "versions"):
        assert resumed.manifest[name] == whole.manifest[name]


def test_an_interrupted_audit_of_an_encoder_goes_on_too(tmp_path, counted):
    model = tiny_base(ENCODERS["bert"])
    whole = audited(model)
    counted.clear()
    with pytest.raises(KeyboardInterrupt):
        audited(model, tmp_path / "blocks", progress=stopped_after(4))
    assert audited(model, tmp_path / "blocks").heads.equals(whole.heads)
    assert len(counted) == 2 * 2 * 3  # texts, lengths, layers


def test_a_finished_audit_does_not_run_the_model_again(tmp_path, counted):
    model = tiny_model("llama")
    first = audited(model, tmp_path / "blocks")
    model.base_model.forward = None
    assert audited(model, tmp_path / "blocks").heads.equals(first.heads)
    assert len(counted) == 6


def test_blocks_of_other_arguments_or_weights_are_refused(tmp_path):
    model, other = tiny_model("llama"), tiny_model("qwen3")
    audited(model, tmp_path / "blocks")
    for wrong, options in ((other, {}), (model, {"eps": 0.2}), (model, {"seed": 1})):
        with pytest.raises(ResultError, match="unfinished audit of another"):
            audited(wrong, tmp_path / "blocks", **options)
    again = audited(model, tmp_path / "blocks", eps=0.2, overwrite=True)
    assert again.manifest["arguments"]["eps"] == 0.2


def test_a_text_split_by_layers_over_workers_merges_to_the_same_table():
    model = tiny_model("gemma3")
    parts = [audited(model, layers=layers) for layers in ([0, 2], [1])]
    merged, whole = merge_audits(parts), audited(model)
    assert merged.heads.equals(whole.heads)
    assert merged.manifest["arguments"] == whole.manifest["arguments"]
