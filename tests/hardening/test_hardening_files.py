"""Files that are cut short, of wrong shapes, or not what their name says."""

import json
import re
import shutil
import struct

import pytest
import torch
from safetensors.torch import save, save_file

from largeprompt.audit import load_audit
from largeprompt.errors import ModelNotFoundError, ResultError
from largeprompt.experiments import reproduction
from largeprompt.experiments.sweep import Demand, Processes, run_sweep
from largeprompt.experiments.sweep.specification import specification
from largeprompt.hf import load_text
from largeprompt.hf.ablation_store import EffectStore
from largeprompt.hf.models import load_model
from largeprompt.hf.texts import token_ids
from tests.hf.tiny import tiny_tokenizer
from tests.report.synthetic import synthetic_audit

LINE = 200_000_000  # bytes


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


SHAPE = (2, 9, 5)
WHOLE = save({name: drawn(*SHAPE) for name in "qkv"})
CUT = {
    "empty": b"",
    "three bytes": WHOLE[:3],
    "only its length": WHOLE[:8],
    "half": WHOLE[: len(WHOLE) // 2],
    "a byte short": WHOLE[:-1],
    "noise": b"\xff" * 100,
    "a header beyond the file": struct.pack("<Q", 2**62) + b"{}",
    "a header that is no JSON": struct.pack("<Q", 5) + b"hello",
}


def arrays(**changes: torch.Tensor) -> dict[str, torch.Tensor]:
    return {name: drawn(*SHAPE) for name in "qkv"} | changes


WRONG_ARRAYS = {
    "scalars": arrays(**{name: drawn() for name in "qkv"}),
    "rank two": arrays(q=drawn(9, 5)),
    "rank four": arrays(q=drawn(1, *SHAPE), k=drawn(1, *SHAPE), v=drawn(1, *SHAPE)),
    "another width": arrays(k=drawn(2, 9, 6)),
    "fewer keys": arrays(k=drawn(2, 8, 5)),
    "no whole groups": arrays(q=drawn(3, 9, 5)),
    "no head": arrays(**{name: drawn(0, 9, 5) for name in "qkv"}),
    "no width": arrays(q=drawn(2, 9, 0), k=drawn(2, 9, 0)),
    "integers": arrays(q=torch.ones(SHAPE, dtype=torch.int64)),
    "truth values": arrays(k=torch.ones(SHAPE, dtype=torch.bool)),
    "complex numbers": arrays(v=torch.ones(SHAPE, dtype=torch.complex64)),
    "eight bits": arrays(q=drawn(*SHAPE).to(torch.float8_e4m3fn)),
    "no number": arrays(q=drawn(*SHAPE) * torch.nan),
    "infinite": arrays(k=drawn(*SHAPE) / 0),
    "a scale that is no number": arrays(scale=torch.tensor(torch.nan)),
    "a complex scale": arrays(scale=torch.tensor(1j)),
    "two scales": arrays(scale=torch.ones(2)),
    "the layer twice": arrays(q0=drawn(*SHAPE)),
    "a layer beyond any": {f"{name}{'9' * 30}": drawn(*SHAPE) for name in "qkv"},
    "no keys": {"q": drawn(*SHAPE)},
    "other names": {"a": drawn(1)},
}
EYE = torch.eye(3)
HEAD = {"key": EYE, "query": EYE.clone(), "value": EYE.clone(), "scale": drawn(1).abs()}
WRONG_HEADS = {
    "another width": HEAD | {"query": torch.eye(4)},
    "vectors": HEAD | {"key": drawn(3)},
    "nothing": HEAD | {name: drawn(0, 0) for name in ("key", "query", "value")},
    "only a key": {"key": EYE},
    "no number": HEAD | {"key": EYE * torch.nan},
    "complex numbers": HEAD | {"value": EYE.to(torch.complex64)},
    "two scales": HEAD | {"scale": torch.ones(2)},
    "a scale that is no number": HEAD | {"scale": torch.tensor(torch.nan)},
    "zero": HEAD | {name: torch.zeros(3, 3) for name in ("key", "query", "value")},
}
SPECTRA = {
    "empty.txt": b"",
    "latin.txt": b"caf\xe9",
    "words.txt": b"one two",
    "negative.txt": b"-1",
    "no-number.txt": b"nan",
    "infinite.txt": b"1e999",
    "three.txt": b"1 2 3",
    "ragged.txt": b"1\n1 2",
    "empty.json": b"",
    "cut.json": b'{"value_eig',
    "null.json": b"null",
    "list.json": b"[]",
    "text.json": b'{"value_eigenvalues": "x"}',
    "nested.json": b'{"value_eigenvalues": [[1]]}',
    "nothing.json": b'{"value_eigenvalues": null}',
    "huge.json": b'{"value_eigenvalues": [' + b"9" * 5000 + b"]}",
    "deep.json": b"[" * 100_000,
    "shapes.json": b'{"logit_eigenvalues":[1],"responses":[1,2],"variance":1}',
}
SWEEPS = {
    "empty": b"",
    "latin": b'experiment = "caf\xe9"',
    "cut": b'experiment = "law"\n[grid',
    "zero byte": b"\0",
    "deep": b"a = " + b"[" * 5000,
    "no experiment": b"[grid]\nn = [1]",
    "unknown": b'experiment = "lew"',
    "no module": b'experiment = "os.nowhere:none"',
    "words": b'experiment = "law"\n[grid]\nn = ["x"]',
    "a date": b'experiment = "law"\n[grid]\nn = [1979-05-27]',
    "truth": b'experiment = "law"\n[grid]\nn = [true]',
    "huge": b'experiment = "law"\n[grid]\nn = [' + b"9" * 400 + b"]",
    "negative": b'experiment = "law"\n[grid]\nn = [-1]',
    "no value": b'experiment = "law"\n[grid]\nn = []',
}
TEXTS = {"empty": b"", "blank": b" \n\t" * 99, "latin": b"caf\xe9 " * 99}


@pytest.fixture
def refused(command, tmp_path):
    """Run a command that must refuse in words and leave nothing in `out`."""

    def run(*arguments: object) -> str:
        ran = command(*arguments, "--out", tmp_path / "out")
        assert ran.status in (1, 2), ran.stdout
        assert ran.stderr
        assert not (tmp_path / "out").exists()
        return ran.stderr

    return run


@pytest.mark.parametrize("content", CUT.values(), ids=CUT)
def test_a_safetensors_file_cut_short_is_refused(refused, tmp_path, content):
    path = tmp_path / "cut.safetensors"
    path.write_bytes(content)
    assert "cannot read arrays from" in refused("audit", path, "--lengths", "9")
    assert "must be a safetensors file" in refused("concentration", "--head", path)


@pytest.mark.parametrize("wrong", WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
def test_arrays_of_wrong_shapes_and_types_are_refused(refused, tmp_path, wrong):
    save_file(wrong, tmp_path / "wrong.safetensors")
    refused("audit", tmp_path / "wrong.safetensors", "--lengths", "9", "--queries", "2")


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("wrong", WRONG_HEADS.values(), ids=WRONG_HEADS)
def test_a_head_of_wrong_shapes_and_types_is_refused(refused, tmp_path, wrong):
    save_file(wrong, tmp_path / "head.safetensors")
    small = ["--seeds", "2", "--queries", "2", "--prompts", "2", "--lengths", "2,4"]
    head = ["--head", tmp_path / "head.safetensors", "--no-bounds", "--law", "sphere"]
    refused("concentration", *head, *small)


@pytest.mark.parametrize("name", SPECTRA)
def test_a_wrong_spectrum_is_refused(command, tmp_path, name):
    (tmp_path / name).write_bytes(SPECTRA[name])
    plan = ["plan", "--n", "9", "--logit-variance", "1", "--spectrum", tmp_path / name]
    ran = command(*plan)
    assert ran.status == 2
    assert not ran.stdout


@pytest.mark.parametrize("content", SWEEPS.values(), ids=SWEEPS)
def test_a_wrong_specification_of_a_sweep_is_refused(refused, tmp_path, content):
    (tmp_path / "sweep.toml").write_bytes(content)
    refused("sweep", tmp_path / "sweep.toml", "--list")


@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", ["audit", "ablate", "compress-eval", "depth"])
def test_a_text_without_text_is_refused(refused, tmp_path, name, content):
    (tmp_path / "text.txt").write_bytes(content)
    told = refused(name, "./nowhere", "--text", tmp_path / "text.txt")
    assert re.search("is empty|is not UTF-8", told)


def test_a_line_of_200_megabytes_is_read_no_further_than_needed(tmp_path):
    path = tmp_path / "line.txt"
    path.write_bytes(b"a" * LINE)
    ids = token_ids(load_text(str(path)), tiny_tokenizer(), 100)
    assert ids.shape == (100,)


def test_a_file_of_200_megabytes_is_no_spectrum_and_no_sweep(command, tmp_path):
    path = tmp_path / "line"
    with path.open("wb") as file:
        file.truncate(LINE)
    plan = command("plan", "--n", "9", "--logit-variance", "1", "--spectrum", path)
    sweep = command("sweep", path, "--out", tmp_path / "out")
    assert plan.status == sweep.status == 2
    assert "at most 16,777,216 bytes" in plan.stderr
    assert "at most 16,777,216 bytes" in sweep.stderr


@pytest.mark.parametrize("length", [0, 3, 24, 5000])
def test_a_gguf_file_cut_short_is_refused(tmp_path, monkeypatch, length):
    monkeypatch.setenv("LARGEPROMPT_CACHE", str(tmp_path / "cache"))
    header = b"GGUF" + struct.pack("<IQQ", 3, 9, 2**40)
    (tmp_path / "cut.gguf").write_bytes((header + b"\7" * 9000)[:length])
    with pytest.raises(ModelNotFoundError, match=r"cannot read .*cut\.gguf"):
        load_model(str(tmp_path / "cut.gguf"))
    assert not list((tmp_path / "cache" / "models").glob("*[!k]"))  # locks alone


@pytest.mark.parametrize(
    ("name", "length"),
    [("model.safetensors", 9), ("model.safetensors", 9000), ("config.json", 9)],
)
def test_a_model_folder_with_a_file_cut_short_is_refused(
    tiny_folder, tmp_path, name, length
):
    folder = tmp_path / "model"
    shutil.copytree(tiny_folder / "model", folder)
    (folder / name).write_bytes((folder / name).read_bytes()[:length])
    with pytest.raises(ModelNotFoundError):
        load_model(str(folder))


@pytest.mark.parametrize("how", ["half", "empty", "noise", "gone", "folder", "list"])
@pytest.mark.parametrize("name", ["heads.parquet", "manifest.json"])
def test_a_damaged_audit_is_refused(refused, tmp_path, name, how):
    synthetic_audit(2, 2, (64,)).save(tmp_path / "audit")
    path = tmp_path / "audit" / name
    content = path.read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how != "gone":
        path.write_bytes(
            {"half": content[:99], "empty": b"", "list": b"[1]"}.get(how, b"\xffPAR1")
        )
    refused("compare", tmp_path / "audit", tmp_path / "audit")
    refused("figures", tmp_path / "audit")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep of one cell that is done."""
    folder = tmp_path_factory.mktemp("sweep") / "sweep"
    grid = {"n": [16], "logit_variance": [0.5]}
    cells = specification({"experiment": "law", "grid": grid})
    run_sweep(cells, folder, Processes(1), Demand(), lambda cell, state, text: None)
    return folder


@pytest.mark.parametrize("content", [b"[1]", b"\xff"])
def test_a_damaged_sweep_is_told_or_refused(command, tmp_path, sweep, content):
    for place in ("sweep.json", "cells", "records"):
        folder = tmp_path / place
        shutil.copytree(sweep, folder)
        path = folder / place
        if path.is_dir():
            (path,) = path.iterdir()
        path.write_bytes(content)
        status = command("status", folder)
        figures = command("figures", folder, "--suffix", "svg", "--out", tmp_path)
        assert status.status == (1 if place == "sweep.json" else 0)
        assert figures.status == (0 if place == "records" else 1)


def test_damaged_parts_of_an_unfinished_run_are_computed_again(tmp_path):
    (tmp_path / "limit.parquet").write_bytes(b"PAR1")
    assert reproduction.read_finding(tmp_path / "limit.parquet", "run") is None
    store = EffectStore(tmp_path, {"key": 1})
    for content in (b"", b"{", b"[]", b"\xff", json.dumps({"loss": 1}).encode()):
        store._path([(0, 0)]).write_bytes(content)
        assert store.get([(0, 0)]) is None


def test_a_manifest_of_another_format_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text('{"format": "largeprompt.audit/0"}')
    with pytest.raises(ResultError, match="format"):
        load_audit(tmp_path)
