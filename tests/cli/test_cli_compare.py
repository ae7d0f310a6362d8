"""The command line as a user types it: compare, and figures of what it wrote."""

import pytest

from largeprompt.audit import Comparison
from tests.report.synthetic import synthetic_audit


@pytest.fixture
def audits(tmp_path):
    for name in ("base", "tuned"):
        synthetic_audit(2, 2, (64, 128), name=name).save(tmp_path / name)
    synthetic_audit(3, 2, (64, 128)).save(tmp_path / "deeper")
    return tmp_path


def test_compare_writes_a_table_a_manifest_and_a_page(command, audits):
    out = audits / "out"
    status, told, _ = command(
        "compare", audits / "base", audits / "tuned", "--out", out
    )
    assert status == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "comparison.html",
        "comparison.json",
        "comparison.parquet",
    ]
    assert Comparison.load(out).heads.num_rows == 8
    assert "differs: model: name: base | tuned" in told
    assert f"page: {out / 'comparison.html'}" in told


def test_compare_refuses_to_replace_unless_told(command, audits):
    arguments = ("compare", audits / "base", audits / "tuned", "--out", audits / "out")
    assert command(*arguments)[0] == 0
    status, _, complaint = command(*arguments)
    assert status == 1
    assert "already holds comparison.html" in complaint
    assert command(*arguments, "--overwrite")[0] == 0


def test_compare_says_why_two_audits_cannot_be_compared(command, audits):
    status, _, complaint = command(
        "compare", audits / "base", audits / "deeper", "--out", audits / "out"
    )
    assert status == 1
    assert "2 layers of 2 heads, and 3 layers of 2 heads" in complaint
    assert not (audits / "out").exists()


def test_compare_refuses_a_folder_without_an_audit(command, audits):
    (audits / "empty").mkdir()
    status, _, complaint = command(
        "compare", audits / "base", audits / "empty", "--out", audits / "out"
    )
    assert status == 1
    assert "no audit there" in complaint


@pytest.mark.parametrize(
    ("folder", "kinds"),
    [
        ("base", ["head-map", "law", "linear-heads", "phase-map"]),
        ("out", ["change", "change-map"]),
    ],
)
def test_figures_come_with_the_numbers_behind_each(command, audits, folder, kinds):
    command("compare", audits / "base", audits / "tuned", "--out", audits / "out")
    where = audits / "figures"
    status, told, _ = command(
        "figures", audits / folder, "--out", where, "--suffix", "svg"
    )
    assert status == 0
    expected = sorted(f"{kind}{end}" for kind in kinds for end in (".csv", ".svg"))
    assert sorted(path.name for path in where.iterdir()) == expected
    assert len(told.splitlines()) == 2 * len(kinds)
