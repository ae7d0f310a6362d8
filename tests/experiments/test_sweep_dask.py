"""A sweep on a real scheduler of dask.distributed with two worker processes."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from largeprompt.errors import SweepError
from largeprompt.experiments.sweep import Cluster, State, run_sweep
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


def dask(*arguments: str, gate: str) -> subprocess.Popen[bytes]:
    """Start one of dask's own commands, as a user does."""
    inherited = os.environ.get("PYTHONPATH", "")
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{inherited}",
        "PROBE_GATE": gate,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    return tmp_path_factory.mktemp("gate")


@pytest.fixture(scope="module")
def scheduler(gate) -> Iterator[str]:
    """The address of a scheduler with two workers on loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    local = ("--host", "127.0.0.1", "--no-dashboard")
    each = ("--nthreads", "1", "--no-nanny")
    commands = [("scheduler", *local, "--port", port)]
    commands += [("worker", address, *local, *each)] * 2
    processes = [dask(*command, gate=str(gate)) for command in commands]
    try:
        yield address
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def test_a_cluster_finishes_a_sweep_although_a_worker_is_killed(
    scheduler, gate, tmp_path
):
    out, local = tmp_path / "out", tmp_path / "local"
    spec = spec_file(tmp_path / "sweep.toml", 8)
    command = ("sweep", spec, "--out", out, "--scheduler", scheduler)
    with started(*command, gate=gate) as process:
        os.kill(at_gate(gate, 2)[0], signal.SIGKILL)
        (gate / "go").touch()
        said, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "8 cells: 8 done" in said
    assert sum(begun(out)) == 9  # the one that was killed, begun again
    assert leftovers(out) == []
    finish(probes(8), local)
    assert contents(out) == contents(local)  # nothing lost, nothing twice
    again = run_sweep(probes(8), out, Cluster(scheduler))
    assert set(again.values()) == {State.FOUND}


def test_no_scheduler_at_an_address_is_said():
    with pytest.raises(SweepError, match="no scheduler answers at tcp"):
        Cluster("tcp://127.0.0.1:9", patience=0.5)
