import pytest
import torch

from largeprompt.audit import Question, load_audit, merge_audits
from largeprompt.audit.layer import LayerArrays
from largeprompt.audit.layers import audit_layers


def layers():
    generator = torch.Generator().manual_seed(0)
    return {
        layer: LayerArrays(
            torch.randn(6, 90, 5, generator=generator),
            torch.randn(2, 90, 5, generator=generator),
            torch.randn(2, 90, 5, generator=generator),
            0.4,
        )
        for layer in range(4)
    }


def audited(numbers, heads=None, name="arrays", lengths=(80, 90)):
    question = Question(list(lengths), 32, 0.1, layers=numbers, heads=heads)
    chosen = [(number, layers()[number]) for number in numbers]
    result = audit_layers(chosen, question, window=None, causal=True, name=name)
    result.manifest["model"].update(sha256="same", layers=4, name="arrays")
    return result


def test_parts_of_a_model_merge_to_the_audit_of_the_whole():
    whole = audited([0, 1, 2, 3])
    merged = merge_audits([audited([1, 3]), audited([2]), audited([0])])
    assert merged.heads.equals(whole.heads)
    assert merged.manifest["arguments"]["layers"] is None
    heads = merge_audits([audited([0, 1], [4, 5]), audited([0, 1], [0, 1, 2, 3])])
    assert heads.heads.equals(audited([0, 1]).heads)
    assert heads.manifest["arguments"]["heads"] is None
    assert merge_audits([audited([1]), audited([2])]).manifest["arguments"][
        "layers"
    ] == [1, 2]


def test_texts_merge_and_come_apart_again(tmp_path):
    one, two = audited([0], name="one"), audited([0], name="two")
    both = merge_audits([two, one])
    assert both.texts == ["two", "one"]
    assert both.heads["text"].to_pylist()[:12] == ["two"] * 12
    assert both.manifest["text"]["name"] == "two, one"
    assert both.only("one").heads.equals(one.heads)
    assert both.only("one").manifest["text"] == one.manifest["text"]
    both.save(tmp_path / "both")
    assert load_audit(tmp_path / "both").texts == ["two", "one"]
    with pytest.raises(ValueError, match="text must be one of"):
        both.only("three")


def test_parts_that_do_not_belong_together_are_refused():
    with pytest.raises(ValueError, match="at least one part"):
        merge_audits([])
    with pytest.raises(ValueError, match="must not overlap"):
        merge_audits([audited([0, 1]), audited([1])])
    with pytest.raises(ValueError, match="same arguments"):
        merge_audits([audited([0]), audited([1], lengths=(80,))])
    other = audited([1])
    other.manifest["model"]["sha256"] = "other"
    with pytest.raises(ValueError, match="same model"):
        merge_audits([audited([0]), other])
