import os

import pytest
import torch

from largeprompt.audit import store as module
from largeprompt.audit.files import check_writable
from largeprompt.audit.layer import LayerArrays, layer_rows
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.store import Blocks, drop
from largeprompt.errors import ResultError


@pytest.fixture(scope="module")
def rows():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 45, 5, generator=generator) for _ in range(3))
    arrays = LayerArrays(q, k, v, 0.4)
    return [
        row
        for n in (21, 45)
        for row in layer_rows(
            arrays,
            Prefixes.last(n, 4, None),
            layer=1,
            heads=[0, 1],
            eps=0.1,
            text="arrays",
            compared=None,
        )
    ]


def test_blocks_come_back_to_the_bit(rows, tmp_path):
    blocks = Blocks.open(tmp_path / "unfinished", {"model": "one"})
    assert not (tmp_path / "unfinished").exists()
    assert blocks.get("text-0-layer-1") is None
    blocks.put("text-0-layer-1", rows)
    again = Blocks.open(tmp_path / "unfinished", {"model": "one"})
    assert again.get("text-0-layer-1") == rows
    assert again.get("text-0-layer-2") is None
    drop(tmp_path / "unfinished")
    assert list(tmp_path.iterdir()) == []


def test_blocks_of_another_audit_are_refused_unless_dropped(rows, tmp_path):
    Blocks.open(tmp_path, {"model": "one"}).put("block", rows)
    with pytest.raises(ResultError, match="unfinished audit of another model"):
        Blocks.open(tmp_path, {"model": "two"})
    other = Blocks.open(tmp_path, {"model": "two"}, overwrite=True)
    assert other.get("block") is None


def test_an_interrupted_block_is_not_there(rows, tmp_path, monkeypatch):
    blocks = Blocks.open(tmp_path, {"model": "one"})
    blocks.put("first", rows)

    def interrupt(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        blocks.put("second", rows)
    monkeypatch.undo()
    assert blocks.get("first") == rows
    assert blocks.get("second") is None


def test_a_damaged_block_is_refused(rows, tmp_path):
    blocks = Blocks.open(tmp_path, {"model": "one"})
    blocks.put("block", rows)
    path = tmp_path / "block.parquet"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ResultError, match="is damaged"):
        blocks.get("block")


def test_a_directory_that_cannot_be_written_is_refused_by_name(rows, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultError, match=f"cannot write to {tmp_path}"):
        Blocks.open(tmp_path / "file" / "inside", {}).put("block", rows)
    with pytest.raises(ResultError, match="is a file"):
        check_writable(tmp_path / "file" / "inside")
    check_writable(tmp_path / "new" / "inside")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a read-only folder")
def test_a_read_only_directory_is_refused_before_any_work():
    with pytest.raises(ResultError, match="cannot write to /proc/audit"):
        check_writable(module.Path("/proc/audit"))
