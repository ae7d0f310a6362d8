"""The directory of a sweep: refused when it is not one, and read back as it is."""

import json
import os

import pytest

from largeprompt.errors import ResultError
from largeprompt.experiments.sweep import Demand, Lease, Shard, State, read_status
from largeprompt.experiments.sweep import specification as sweep_of
from largeprompt.experiments.sweep.claims import Claims
from largeprompt.experiments.sweep.folder import SweepFolder, saved_sweep
from largeprompt.experiments.sweep.gather import gathered, write_table
from largeprompt.experiments.sweep.presence import present
from largeprompt.experiments.sweep.work import Attempt, Order, carry_out
from largeprompt.laws import gaussian_law
from tests.experiments.sweep_folders import probes

LAW = {"experiment": "law", "grid": {"n": [9, 20], "logit_variance": [1.0, 2.5]}}


def carried_out(sweep, path, shard=None):
    """A directory in which the cells were computed in this process."""
    folder = SweepFolder.prepare(path, sweep)
    for cell in (shard or Shard()).cells(sweep).values():
        carry_out(Order(cell, str(path), "runner", 0))
    return folder


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/nowhere/out"])
def test_a_directory_that_cannot_be_written_is_refused(place, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ResultError, match=r"cannot be written|is a file"):
        SweepFolder.prepare(tmp_path / place, probes(1))
    assert (tmp_path / "file").read_text() == "mine"


def test_a_directory_of_another_experiment_is_refused_and_kept(tmp_path):
    SweepFolder.prepare(tmp_path, probes(1))
    before = (tmp_path / "sweep.json").read_bytes()
    with pytest.raises(
        ResultError, match=r"holds a sweep of '.*Probe.*', not of 'law'"
    ):
        SweepFolder.prepare(tmp_path, sweep_of(LAW))
    assert (tmp_path / "sweep.json").read_bytes() == before


def test_a_directory_of_something_else_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ResultError, match=r"holds manifest\.json but no sweep"):
        SweepFolder.prepare(tmp_path, probes(1))
    assert os.listdir(tmp_path) == ["manifest.json"]


@pytest.mark.parametrize("content", ["", "{", "{}", '{"format": "other/1"}', "[]"])
def test_a_damaged_manifest_is_refused(content, tmp_path):
    (tmp_path / "sweep.json").write_text(content)
    for read in (saved_sweep, lambda path: SweepFolder.prepare(path, probes(1))):
        with pytest.raises(ResultError):
            read(tmp_path)


def test_a_sweep_that_grows_keeps_what_is_done(tmp_path):
    carried_out(probes(2), tmp_path)
    folder = SweepFolder.prepare(tmp_path, probes(3))
    status = read_status(folder.path)
    assert list(status.states.values()) == [State.DONE, State.DONE, State.WAITING]
    assert status.starts == 2


def test_status_tells_what_other_code_has_done_and_does_not_use_it(tmp_path):
    carried_out(probes(3), tmp_path)
    edited = sweep_of(probes(3).content, "edited")
    SweepFolder.prepare(tmp_path, edited)
    status = read_status(tmp_path)
    assert status.count(State.WAITING) == status.other_code == 3
    assert len(list((tmp_path / "cells").iterdir())) == 3
    with pytest.raises(ResultError, match="no cell of the sweep"):
        gathered(SweepFolder(tmp_path), edited)


def test_status_tells_failures_and_cells_of_living_runners_only(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBE_BROKEN", "1")
    sweep = probes(4)
    folder = carried_out(sweep, tmp_path, Shard(2, 4))
    third, fourth = list(sweep.cells)[2:]
    os.symlink("gone", folder.path / "claims" / f"{fourth}.0")
    with present(folder, Lease()) as here:
        Claims(here).take(third)
        status = read_status(tmp_path)
        assert status.runners == (here.runner,)
    assert [state.value for state in status.states.values()] == [
        *("waiting", "failed", "running", "waiting")
    ]
    assert list(status.failures.values()) == ["ArithmeticError: cell 1 is broken"]


def test_the_table_holds_options_and_results_in_the_order_of_the_sweep(tmp_path):
    sweep = sweep_of(LAW)
    folder = carried_out(sweep, tmp_path, Shard(1, 3))
    assert gathered(folder, sweep).column("n").to_pylist() == [9, 20]
    carried_out(sweep, tmp_path)
    table = write_table(folder, sweep)
    assert table.column("n").to_pylist() == [9, 9, 20, 20]
    assert table.column_names[:2] == ["n", "logit_variance"]
    law = gaussian_law(table.column("n"), table.column("logit_variance"))
    assert table.column("inverse_ess").to_pylist() == law.inverse_ess.tolist()
    about = json.loads(table.schema.metadata[b"largeprompt"])
    assert about["specification"] == LAW


def test_a_damaged_result_is_named(tmp_path):
    sweep = sweep_of(LAW)
    folder = carried_out(sweep, tmp_path)
    path = next((tmp_path / "cells").iterdir())
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ResultError, match=f"{path.name} is damaged"):
        gathered(folder, sweep)


def test_a_journal_that_was_cut_off_is_read_up_to_there(tmp_path):
    carried_out(probes(2), tmp_path)
    (journal,) = (tmp_path / "journals").iterdir()
    journal.write_text(journal.read_text() + '{"cell": "x", "eve')
    assert read_status(tmp_path).starts == 2


def test_an_attempt_keeps_failures_and_exits_and_lets_interruptions_pass():
    for failure in (ZeroDivisionError("no"), SystemExit(3), MemoryError()):
        with Attempt() as attempt:
            raise failure
        assert type(failure).__name__ in attempt.failure
    with pytest.raises(KeyboardInterrupt), Attempt():
        raise KeyboardInterrupt
    with Attempt() as attempt:
        pass
    assert attempt.failure == ""


def test_demands_are_of_the_whole_sweep_unless_said_otherwise():
    assert list(Demand().shard.cells(probes(3))) == list(probes(3).cells)
