"""Disks that are full or read-only: one line, status 1, and what was there stays."""

import subprocess
import sys

import pytest

from largeprompt.audit import load_audit
from largeprompt.audit.directory import write_directory
from largeprompt.audit.files import write_whole
from largeprompt.audit.store import Blocks
from largeprompt.errors import ModelNotFoundError, ResultError
from largeprompt.experiments import reproduction
from largeprompt.experiments.verdicts import Finding
from largeprompt.hf.converted import kept_in
from tests.hardening.mounts import fill, names, set_read_only, small_disk
from tests.report.synthetic import synthetic_audit

SWEEP = """
experiment = "law"
[options]
n = 16
logit_variance = 0.5
"""


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk", kibibytes=256) as folder:
        yield folder


@pytest.fixture
def full(disk):
    fill(disk)
    return disk


@pytest.fixture
def read_only(disk):
    set_read_only(disk)
    return disk


@pytest.fixture
def commands(tiny_folder, tmp_path):
    """Every command that writes, with arguments of a small run of it."""
    model = [tiny_folder / "model", "--text", tiny_folder / "text.txt"]
    (tmp_path / "sweep.toml").write_text(SWEEP)
    synthetic_audit(2, 2, (64,)).save(tmp_path / "audit")
    small = ["--seeds", "2", "--queries", "2", "--prompts", "2", "--lengths", "2,4"]
    return {
        "audit": [*model, "--lengths", "40", "--queries", "4"],
        "compare": [tmp_path / "audit", tmp_path / "audit"],
        "ablate": [*model, "--tokens", "60", "--heads", "0.0", "--keep-window", "6"],
        "compress-eval": [
            *(*model, "--prompt-tokens", "90", "--continuation", "9"),
            *("--queries", "30", "--methods", "snapkv", "--budgets", "0.8"),
        ],
        "depth": [*model, "--tokens", "60", "--directions", "2"],
        "concentration": ["--law", "sphere", "--no-bounds", *small],
        "reproduce": ["--fast"],
        "sweep": [tmp_path / "sweep.toml", "--jobs", "1"],
        "figures": [tmp_path / "audit", "--suffix", "html"],
    }


WRITERS = [
    *("audit", "compare", "ablate", "compress-eval", "depth", "concentration"),
    *("reproduce", "sweep", "figures"),
]


@pytest.mark.parametrize("name", WRITERS)
def test_a_read_only_folder_is_refused_in_one_line(command, commands, read_only, name):
    ran = command(name, *commands[name], "--out", read_only / "out")
    assert ran.status == 1, ran.stderr
    assert "Read-only file system" in ran.stderr
    assert str(read_only / "out") in ran.stderr
    assert names(read_only) == set()


@pytest.mark.parametrize(
    "name",
    [
        *("ablate", "concentration", "sweep", "figures"),
        *(
            pytest.param(slow, marks=pytest.mark.slow)  # each computes for seconds
            for slow in ("audit", "compare", "compress-eval", "depth", "reproduce")
        ),
    ],
)
def test_a_full_disk_is_told_in_one_line_and_holds_no_half(
    command, commands, full, name
):
    ran = command(name, *commands[name], "--out", full / "out")
    assert ran.status == 1, ran.stderr
    assert "No space left on device" in ran.stderr
    left = names(full)  # folders at the most: no file that is not whole
    assert not [path for path in left if (full / path).is_file()], left


def test_a_figure_of_a_plan_on_a_full_disk_is_told_in_one_line(command, full):
    plan = ["plan", "--n", "99", "--logit-variance", "1"]
    ran = command(*plan, "--plot", full / "plan.html")
    assert ran.status == 1
    assert "No space left on device" in ran.stderr
    assert names(full) == set()


def test_an_audit_that_no_longer_fits_leaves_the_one_that_is_there(disk):
    small, large = synthetic_audit(2, 2, (64,)), synthetic_audit(30, 9)
    small.save(disk / "audit")
    before = names(disk)
    fill(disk)
    with pytest.raises(ResultError, match="No space left on device"):
        large.save(disk / "audit", overwrite=True)
    assert names(disk) == before
    assert load_audit(disk / "audit").heads.equals(small.heads)


def test_results_go_into_the_mount_point_of_another_file_system(disk):
    write_directory(disk, {"a": b"1", "b": b"2"})
    write_directory(disk, {"a": b"3"}, overwrite=True)
    assert names(disk) == {"a", "b"}
    assert (disk / "a").read_bytes() == b"3"


def test_everything_that_is_kept_on_the_way_says_that_the_disk_is_full(full):
    table = synthetic_audit(1, 1, (64,)).heads
    writers = {
        "a file": lambda: write_whole(full / "page.html", b"x" * 9999),
        "blocks": lambda: Blocks(full / "blocks", "key").put("a", []),
        "parts": lambda: reproduction._write_finding(
            Finding("limit", "", "", table, ()), full / "limit.parquet", "run"
        ),
    }
    for write in writers.values():
        with pytest.raises(ResultError, match="No space left on device"):
            write()
    with (
        pytest.raises(ModelNotFoundError, match="LARGEPROMPT_CACHE"),
        kept_in(full / "models"),
    ):
        (full / "models" / "weights").write_bytes(b"x" * 9999)


def test_an_answer_that_cannot_be_printed_is_told_in_one_line():
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "largeprompt", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 1
    assert ran.stderr == "largeprompt: No space left on device\n"
