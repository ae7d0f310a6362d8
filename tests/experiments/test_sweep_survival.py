"""A sweep on local processes survives what happens to it."""

import errno
import os
import signal
import time

import pytest

from largeprompt.errors import SweepError
from largeprompt.experiments.sweep import (
    Cell,
    Demand,
    Processes,
    Shard,
    State,
    run_sweep,
    specification,
)
from largeprompt.experiments.sweep.folder import SweepFolder
from largeprompt.experiments.sweep.work import End, Order, carry_out
from tests.experiments.sweep_folders import (
    ROOT,
    at_gate,
    begun,
    contents,
    finish,
    leftovers,
    probes,
    spec_file,
    started,
)
from tests.experiments.sweep_probe import wait_for


@pytest.fixture(autouse=True)
def workers_find_the_probes(monkeypatch):
    inherited = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{inherited}")


def test_results_are_the_same_bytes_for_any_number_of_workers_and_any_order(tmp_path):
    sweep = probes(8)
    for jobs in (1, 2, 4):
        assert set(finish(sweep, tmp_path / f"{jobs}", jobs).values()) == {State.DONE}
    content = dict(sweep.content) | {"grid": {"number": list(range(7, -1, -1))}}
    finish(specification(content), tmp_path / "backwards", 2)
    results = [contents(path) for path in tmp_path.iterdir()]
    assert len(results[0]) == 8
    assert len(set(results[0].values())) == 8  # each cell has draws of its own
    assert all(result == results[0] for result in results)


def test_a_killed_worker_costs_its_cell_alone_and_that_is_begun_again(tmp_path):
    out, gate = tmp_path / "out", tmp_path / "gate"
    spec = spec_file(tmp_path / "sweep.toml", 5)
    with started("sweep", spec, "--out", out, "--jobs", "2", gate=gate) as process:
        os.kill(at_gate(gate, 2)[0], signal.SIGKILL)
        (gate / "go").touch()
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "5 cells: 5 done" in said
    assert begun(out) == [1, 1, 1, 1, 2]
    assert len(contents(out)) == 5
    assert leftovers(out) == []


def test_a_killed_runner_takes_its_workers_along_and_the_same_command_resumes(tmp_path):
    out, gate = tmp_path / "out", tmp_path / "gate"
    spec = spec_file(tmp_path / "sweep.toml", 6)
    finish(probes(6), out, 1, Demand(shard=Shard(1, 3)))  # cells 0 and 3
    before = {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    command = ("sweep", spec, "--out", out, "--jobs", "2")
    with started(*command, gate=gate) as process:
        workers = at_gate(gate, 2)
        process.kill()
        process.wait()
        wait_for(lambda: not any(map(is_running, workers)))
    assert contents(out).keys() == before.keys()
    (gate / "go").touch()
    with started(*command, gate=gate) as process:
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "6 cells: 2 done before, 4 done" in said
    assert begun(out) == [1, 1, 1, 1, 2, 2]
    after = {path.name: path.stat().st_mtime_ns for path in (out / "cells").iterdir()}
    assert {name: after[name] for name in before} == before
    assert leftovers(out) == []


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_two_runners_in_one_directory_share_the_cells_out(tmp_path):
    out, gate = tmp_path / "out", tmp_path / "gate"
    spec = spec_file(tmp_path / "sweep.toml", 12)
    command = ("sweep", spec, "--out", out, "--jobs", "1")
    with started(*command, gate=gate) as one, started(*command, gate=gate) as other:
        at_gate(gate, 2)
        (gate / "go").touch()
        said = [runner.communicate(timeout=60)[0] for runner in (one, other)]
    assert (one.returncode, other.returncode) == (0, 0)
    assert begun(out) == [1] * 12
    assert all("12 cells" in words and "failed" not in words for words in said)
    assert len(list((out / "journals").iterdir())) == 2
    assert leftovers(out) == []


def test_shards_of_an_array_of_jobs_finish_a_sweep_without_knowing_each_other(tmp_path):
    sweep = probes(7)
    for index in (1, 2, 3):
        states = finish(sweep, tmp_path, 1, Demand(shard=Shard(index, 3)))
        assert set(states.values()) == {State.DONE}
    assert begun(tmp_path) == [1] * 7
    assert set(finish(sweep, tmp_path, 1).values()) == {State.FOUND}


def test_a_worker_that_dies_after_saving_is_not_a_cell_computed_twice(tmp_path):
    sweep = probes(3, end="late")
    finish(sweep, tmp_path, 1)
    assert begun(tmp_path) == [1, 1, 1]
    assert len(contents(tmp_path)) == 3


def test_a_cell_that_kills_its_workers_fails_and_the_rest_goes_on(tmp_path):
    grid = [{"number": [0], "end": ["deadly"]}, {"number": [1, 2]}]
    sweep = specification(dict(probes(1).content) | {"options": {}, "grid": grid})
    told = []

    def watch(cell: Cell, state: State, text: str) -> None:
        if state is State.FAILED:
            told.append(text)

    states = run_sweep(sweep, tmp_path, Processes(1), watch=watch)
    assert list(states.values()) == [State.FAILED, State.DONE, State.DONE]
    assert told == ["its worker died 3 times, the last time by SIGKILL\n"]
    assert begun(tmp_path) == [1, 1, 3]


def test_failures_are_told_and_only_they_are_tried_again(tmp_path, monkeypatch):
    sweep = probes(5)
    monkeypatch.setenv("PROBE_BROKEN", "1,3")
    states = finish(sweep, tmp_path)
    assert [state.value for state in states.values()] == [
        *("done", "failed", "done", "failed", "done")
    ]
    assert len(list((tmp_path / "failures").iterdir())) == 2
    monkeypatch.setenv("PROBE_BROKEN", "3")
    states = finish(sweep, tmp_path)
    assert [state.value for state in states.values()] == [
        *("done before", "done", "done before", "failed", "done before")
    ]
    assert len(list((tmp_path / "failures").iterdir())) == 1
    assert begun(tmp_path) == [1, 1, 1, 2, 2]


def test_fail_fast_ends_at_the_first_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBE_BROKEN", "1")
    states = finish(probes(40), tmp_path, 1, Demand(fail_fast=True))
    assert list(states.values())[:3] == [State.DONE, State.FAILED, State.WAITING]
    assert len(contents(tmp_path)) == 1
    assert leftovers(tmp_path) == []


def test_force_computes_finished_cells_again_to_the_same_bytes(tmp_path):
    sweep = probes(4)
    finish(sweep, tmp_path)
    before = contents(tmp_path)
    time.sleep(0.05)  # the clock of a file system is coarse
    states = finish(sweep, tmp_path, 2, Demand(force=True))
    assert set(states.values()) == {State.DONE}
    assert begun(tmp_path) == [2] * 4
    assert contents(tmp_path) == before


def test_a_write_that_breaks_off_stops_the_sweep_and_leaves_nothing_half(
    tmp_path, monkeypatch
):
    sweep = probes(4)
    finish(sweep, tmp_path, 1, Demand(shard=Shard(1, 4)))
    monkeypatch.setenv("PROBE_LIMIT", "900")  # bytes: less than a result, not than 1
    with pytest.raises(SweepError, match=r"File too large.*the same command resumes"):
        finish(sweep, tmp_path)
    assert len(contents(tmp_path)) == 1
    assert leftovers(tmp_path) == []
    monkeypatch.delenv("PROBE_LIMIT")
    assert set(finish(sweep, tmp_path).values()) == {State.FOUND, State.DONE}
    assert len(contents(tmp_path)) == 4


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_in_mid_write_is_told_and_nothing_is_there(
    tmp_path, monkeypatch, call
):
    sweep = probes(1)
    folder = SweepFolder.prepare(tmp_path, sweep)
    (cell,) = sweep.cells.values()
    order = Order(cell, str(tmp_path), "runner", 0)

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    outcome = carry_out(order)
    assert outcome.end is End.UNWRITABLE
    assert "No space left on device" in outcome.text
    monkeypatch.undo()
    assert contents(tmp_path) == {}
    assert list(folder.runner("runner").iterdir()) == []
    assert carry_out(order).end is End.DONE
    assert carry_out(order).end is End.FOUND


def test_workers_of_other_code_are_refused(tmp_path):
    sweep = specification(probes(1).content, "other")
    with pytest.raises(SweepError, match="was begun with code other"):
        finish(sweep, tmp_path)
    assert contents(tmp_path) == {}
