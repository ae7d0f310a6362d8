"""Workers that a scheduler of dask.distributed knows, on any number of machines."""

import dataclasses
import json
import queue
import time
from typing import Any, final

from typing_extensions import override

from largeprompt.errors import SweepError
from largeprompt.experiments.sweep.work import End, Order, Outcome, carry_out
from largeprompt.experiments.sweep.workers import Workers

AHEAD = 2  # orders for each thread of the workers, so that none waits for the runner
PATIENCE = 30.0  # seconds


@final
class Cluster(Workers):
    """The workers of a scheduler; they must see the directory of the sweep."""

    def __init__(self, address: str, patience: float = PATIENCE) -> None:
        """Connect.

        Args:
            address: Of the scheduler, as in `tcp://10.0.0.1:8786`.
            patience: Seconds for the scheduler to answer, and for a first worker.

        Raises:
            SweepError: dask.distributed is missing, no scheduler answers there, or it
                has no worker.
        """
        try:
            import distributed
        except ImportError as error:
            raise SweepError(
                "a scheduler needs dask.distributed: "
                "pip install 'largeprompt[distributed]'"
            ) from error
        try:
            self._client = distributed.Client(address, timeout=patience)
        except (OSError, ValueError) as error:
            raise SweepError(f"no scheduler answers at {address}: {error}") from error
        try:
            self._client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            self._client.close()
            raise SweepError(
                f"the scheduler at {address} has no worker; start one with "
                f"'dask worker {address}'"
            ) from error
        self._address = address
        self._futures: dict[str, Any] = {}
        self._ended: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._counted = 0.0
        self._threads = 1

    @override
    def capacity(self) -> int:
        now = time.monotonic()
        if now - self._counted > 1:
            self._counted = now
            threads: Any = self._client.nthreads()
            self._threads = sum(threads.values())
        return AHEAD * self._threads

    @override
    def submit(self, order: Order) -> None:
        identity = order.cell.identity
        name = f"largeprompt-{order.runner}-{identity}"
        future = self._client.submit(answer, order.text(), key=name, pure=False)
        self._futures[identity] = future
        future.add_done_callback(lambda _: self._ended.put(identity))

    @override
    def outcomes(self, timeout: float) -> list[Outcome]:
        try:
            identities = [self._ended.get(timeout=timeout)]
        except queue.Empty:
            if self._client.status != "running":
                raise SweepError(f"the scheduler at {self._address} is gone") from None
            return []
        while not self._ended.empty():
            identities.append(self._ended.get())
        return [self._outcome(identity) for identity in identities]

    @override
    def stop(self) -> None:
        self._client.cancel(list(self._futures.values()))
        self._client.close()

    def _outcome(self, identity: str) -> Outcome:
        future = self._futures.pop(identity)
        if future.status == "cancelled":
            raise SweepError(f"the scheduler at {self._address} is gone")
        error = future.exception()
        if error is not None:  # our side never raises: its workers died, or are broken
            return Outcome(identity, End.FAILED, f"{type(error).__name__}: {error}\n")
        content = json.loads(future.result())
        future.release()
        return Outcome(**content | {"end": End(content["end"])})


def answer(order: str) -> str:
    """Carry out an order on a worker; text in and text out, so that nothing else is."""
    return json.dumps(dataclasses.asdict(carry_out(Order.read(order))))
