import json
import os
from pathlib import Path

import pytest
import torch

from largeprompt.audit import AuditResult, audit_arrays
from largeprompt.audit import result as module
from largeprompt.errors import ResultError


@pytest.fixture(scope="module")
def result():
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(h, 45, 5, generator=generator) for h in (6, 2, 2))
    return audit_arrays(q, k, v, lengths=[21, 45], queries=4)


def test_result_comes_back_from_its_files(result, tmp_path):
    result.save(tmp_path / "new" / "audit")
    loaded = AuditResult.load(tmp_path / "new" / "audit")
    assert loaded.heads.equals(result.heads)
    assert loaded.manifest == result.manifest
    assert loaded.summary == result.summary
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["audit"]


def test_saving_keeps_other_files(result, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    result.save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert AuditResult.load(tmp_path).heads.equals(result.heads)


def test_saving_refuses_to_replace_a_result_unasked(result, tmp_path):
    result.save(tmp_path / "audit")
    before = (tmp_path / "audit" / "manifest.json").read_bytes()
    with pytest.raises(ResultError, match=r"already holds heads.parquet and profiles"):
        result.save(tmp_path / "audit")
    assert (tmp_path / "audit" / "manifest.json").read_bytes() == before
    result.save(tmp_path / "audit", overwrite=True)


def test_saving_refuses_a_file_in_the_way(result, tmp_path):
    (tmp_path / "audit").write_text("")
    with pytest.raises(ResultError, match="is a file"):
        result.save(tmp_path / "audit")


def test_an_interruption_leaves_nothing_behind(result, tmp_path, monkeypatch):
    def interrupt(path, content):
        path.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        result.save(tmp_path / "audit")
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_between_the_two_files_is_noticed(
    result, tmp_path, monkeypatch
):
    result.save(tmp_path / "audit")
    shorter = AuditResult(result.heads.slice(0, 3), result.manifest)
    replace = os.replace

    def interrupt(source, target):
        if target.name == module.MANIFEST:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        shorter.save(tmp_path / "audit", overwrite=True)
    with pytest.raises(ResultError, match="not the one that"):
        AuditResult.load(tmp_path / "audit")


@pytest.mark.parametrize("name", ["heads.parquet", "profiles.parquet", "manifest.json"])
def test_a_truncated_file_is_refused(result, tmp_path, name):
    result.save(tmp_path / "audit")
    path = tmp_path / "audit" / name
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ResultError, match="truncated"):
        AuditResult.load(tmp_path / "audit")


@pytest.mark.parametrize("name", ["heads.parquet", "profiles.parquet", "manifest.json"])
def test_a_missing_file_is_refused(result, tmp_path, name):
    result.save(tmp_path / "audit")
    (tmp_path / "audit" / name).unlink()
    with pytest.raises(ResultError, match="cannot read"):
        AuditResult.load(tmp_path / "audit")


def test_a_foreign_format_is_refused(result, tmp_path):
    result.save(tmp_path / "audit")
    path = tmp_path / "audit" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "format": "largeprompt.audit/9"}))
    with pytest.raises(ResultError, match="not of the format"):
        AuditResult.load(tmp_path / "audit")
    path.write_text("[]")
    with pytest.raises(ResultError, match="not of the format"):
        AuditResult.load(tmp_path / "audit")


def test_a_table_with_other_columns_is_refused(result):
    with pytest.raises(ValueError, match="heads must have the columns"):
        AuditResult(result.heads.drop_columns(["ess"]), result.manifest)
    with pytest.raises(ValueError, match="at least one head"):
        AuditResult(result.heads.slice(0, 0), result.manifest)
    with pytest.raises(ValueError, match="format"):
        AuditResult(result.heads, {})


def test_summary_counts_the_heads_at_the_longest_length(result):
    summary = result.summary
    assert (summary["n"], summary["heads"]) == (45, 6)
    assert sum(summary["phases"].values()) == 6
    assert sum(summary["failed_assumptions"].values()) == 6


def test_manifest_defines_every_column_in_json(result):
    manifest = json.loads(json.dumps(result.manifest))
    assert list(manifest["definitions"]) == result.heads.column_names
    assert manifest["arguments"]["lengths"] == [21, 45]
