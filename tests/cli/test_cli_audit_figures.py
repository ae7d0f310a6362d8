"""Figures of an audit beside it: every picture, and the numbers that it draws."""

import csv

import pytest
import torch
from safetensors.torch import save_file

from largeprompt.audit import load_audit
from largeprompt.report.figure import COLUMNS, Figure

MAGIC = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}


@pytest.fixture
def arrays(tmp_path):
    generator = torch.Generator().manual_seed(0)
    path = tmp_path / "arrays.safetensors"
    heads = {"q": 2, "k": 1, "v": 1}
    save_file(
        {name: torch.randn(h, 60, 4, generator=generator) for name, h in heads.items()},
        path,
    )
    return path


def test_audit_draws_every_figure_and_writes_its_numbers(arrays, tmp_path, command):
    out, figures = tmp_path / "audit", tmp_path / "figures"
    argv = ["audit", str(arrays), "--lengths", "30,60", "--out", str(out)]
    assert command(*argv, "--figures", str(figures)).status == 0
    names = {path.name for path in figures.iterdir()}
    suffixes = (*MAGIC, ".csv")
    assert names == {f"{kind.value}{suffix}" for kind in Figure for suffix in suffixes}
    for kind in Figure:
        for suffix, magic in MAGIC.items():
            content = (figures / f"{kind.value}{suffix}").read_bytes()
            assert content.startswith(magic)
    with (figures / "law.csv").open() as file:
        rows = list(csv.DictReader(file))
    longest = [r for r in load_audit(out).heads.to_pylist() if r["n"] == 60]
    assert tuple(rows[0]) == COLUMNS[Figure.LAW]
    for row, head in zip(rows, longest, strict=True):
        assert float(row["limit_error_held_out"]) == head["limit_error_held_out"]


def test_a_file_in_place_of_a_folder_of_figures_is_refused(arrays, tmp_path, command):
    out = tmp_path / "audit"
    argv = ["audit", str(arrays), "--lengths", "30,60", "--out", str(out)]
    refused = command(*argv, "--figures", str(arrays))
    assert refused.status == 1
    assert "is a file" in refused.stderr
    assert not out.exists()
