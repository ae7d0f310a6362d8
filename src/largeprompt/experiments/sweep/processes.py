"""Workers that are processes on this machine."""

import contextlib
import dataclasses
import json
import os
import selectors
import signal
import subprocess
import sys
from typing import BinaryIO, final

from typing_extensions import override

from largeprompt.experiments.sweep.work import End, Order, Outcome
from largeprompt.experiments.sweep.workers import ATTEMPTS, Workers

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@final
@dataclasses.dataclass(eq=False)
class _Process:
    """A worker and the order that it has, if any."""

    process: subprocess.Popen[bytes]
    orders: BinaryIO
    outcomes: BinaryIO
    order: Order | None = None


@final
class Processes(Workers):
    """So many processes, started when they are needed, replaced when they die."""

    def __init__(self, jobs: int, threads: int = 1) -> None:
        """Set how many processes there may be, and the threads of each.

        Args:
            jobs: How many cells are computed at once.
            threads: Of a worker; results may depend on it in the last digits, so that
                it is not taken from the number of processors.

        Raises:
            ValueError: There is none of either.
        """
        if jobs < 1 or threads < 1:
            raise ValueError(
                f"jobs and threads must be at least 1; got {jobs} and {threads}"
            )
        self._jobs = jobs
        self._environment = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
        self._workers: list[_Process] = []
        self._deaths: dict[str, int] = {}
        self._selector = selectors.DefaultSelector()

    @override
    def capacity(self) -> int:
        return self._jobs

    @override
    def submit(self, order: Order) -> None:
        idle = [worker for worker in self._workers if worker.order is None]
        worker = idle[0] if idle else self._started()
        worker.order = order
        with contextlib.suppress(BrokenPipeError):  # its other pipe says so, too
            worker.orders.write(order.text().encode() + b"\n")
            worker.orders.flush()

    @override
    def outcomes(self, timeout: float) -> list[Outcome]:
        found = []
        for key, _ in self._selector.select(timeout):
            worker: _Process = key.data
            line = worker.outcomes.readline()
            if line.endswith(b"\n"):
                content = json.loads(line)
                worker.order = None
                found.append(Outcome(**content | {"end": End(content["end"])}))
            else:
                found += self._mourned(worker)
        return found

    @override
    def stop(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in list(self._workers):
            self._forget(worker)
        self._selector.close()

    def _started(self) -> _Process:
        orders, for_us = os.pipe()
        from_it, outcomes = os.pipe()
        command = [sys.executable, "-m", "largeprompt.experiments.sweep.worker"]
        process = subprocess.Popen(
            [*command, str(orders), str(outcomes)],
            stdin=subprocess.DEVNULL,
            stdout=2,  # what cells print must not mix with what the command says
            env=self._environment,
            pass_fds=(orders, outcomes),
        )
        os.close(orders)
        os.close(outcomes)
        worker = _Process(process, os.fdopen(for_us, "wb"), os.fdopen(from_it, "rb"))
        self._workers.append(worker)
        self._selector.register(worker.outcomes, selectors.EVENT_READ, worker)
        return worker

    def _mourned(self, worker: _Process) -> list[Outcome]:
        """Give a dead worker's order to another one, or say that it is a deadly one."""
        self._forget(worker)
        order = worker.order
        if order is None:
            return []
        identity = order.cell.identity
        self._deaths[identity] = deaths = self._deaths.get(identity, 0) + 1
        if deaths < ATTEMPTS:
            self.submit(order)
            return []
        how = f"its worker died {deaths} times, {_last_words(worker.process)}"
        return [Outcome(identity, End.FAILED, f"{how}\n")]

    def _forget(self, worker: _Process) -> None:
        worker.process.wait()
        self._selector.unregister(worker.outcomes)
        self._workers.remove(worker)
        worker.outcomes.close()
        with contextlib.suppress(BrokenPipeError):
            worker.orders.close()


def _last_words(process: subprocess.Popen[bytes]) -> str:
    status = process.returncode
    if status < 0:
        return f"the last time by {signal.Signals(-status).name}"
    return f"the last time with exit status {status}"
