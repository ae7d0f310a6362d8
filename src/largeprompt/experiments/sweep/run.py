"""A run of a sweep: cells are claimed, handed out and settled until none is left."""

import collections
import dataclasses
import enum
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias, final

from largeprompt.errors import SweepError
from largeprompt.experiments.sweep.claims import Claims
from largeprompt.experiments.sweep.folder import SweepFolder
from largeprompt.experiments.sweep.presence import Lease, present
from largeprompt.experiments.sweep.shard import Shard
from largeprompt.experiments.sweep.specification import Cell, Specification
from largeprompt.experiments.sweep.work import End, Order, Outcome, save_failure
from largeprompt.experiments.sweep.workers import Workers

WAIT = 0.2  # seconds for an outcome before a look around
AGAIN = 1.0  # seconds between looks at cells that other runners have


class State(enum.StrEnum):
    """Where a cell stands, as a runner sees it."""

    WAITING = "waiting"
    RUNNING = "running"
    ELSEWHERE = "with another runner"
    FOUND = "done before"
    DONE = "done"
    FAILED = "failed"


Watch: TypeAlias = Callable[[Cell, State, str], None]


@final
@dataclasses.dataclass(frozen=True)
class Demand:
    """How a run goes about its cells.

    Attributes:
        force: Compute cells that were finished before the run began, too.
        fail_fast: End at the first failure.
        shard: Which cells.
        lease: How long other runners are trusted without a sign of life.
    """

    force: bool = False
    fail_fast: bool = False
    shard: Shard = dataclasses.field(default_factory=Shard)
    lease: Lease = dataclasses.field(default_factory=Lease)


def run_sweep(
    sweep: Specification,
    path: Path,
    workers: Workers,
    demand: Demand | None = None,
    watch: Watch = lambda cell, state, text: None,
) -> Mapping[str, State]:
    """Compute the cells that are not finished, and return the state of each.

    However often it is interrupted, by whatever, the same call finishes what is left.
    Several runs in one directory at once share the cells out. The workers are stopped
    in the end.

    Args:
        sweep: The cells.
        path: The directory; made when missing.
        workers: Where cells are computed.
        demand: How; as `Demand()` when None.
        watch: Called with a cell, its new state, and the traceback of a failure.

    Raises:
        ResultError: The directory cannot be written or holds something else.
        SweepError: The disk is full, the scheduler is gone, or workers run other code.
    """
    demand = Demand() if demand is None else demand
    folder = SweepFolder.prepare(path, sweep)
    try:
        with present(folder, demand.lease) as here:
            run = _Run(demand.shard.cells(sweep), Claims(here), workers, demand, watch)
            try:
                with workers:
                    run.finish()
            finally:
                run.release()
    except OSError as error:
        raise SweepError(f"the sweep in {path} cannot go on: {error}") from error
    return run.states


@final
class _Run:
    """The cells of one run between waiting and settled."""

    def __init__(
        self,
        cells: Mapping[str, Cell],
        claims: Claims,
        workers: Workers,
        demand: Demand,
        watch: Watch,
    ) -> None:
        """Set everything waiting."""
        self.states = dict.fromkeys(cells, State.WAITING)
        self._cells, self._claims, self._workers = cells, claims, workers
        self._demand, self._watch = demand, watch
        self._here, self._folder = claims.presence, claims.presence.folder
        self._since = self._here.since if demand.force else 0
        self._waiting = collections.deque(cells)
        self._elsewhere: list[str] = []
        self._held: dict[str, int] = {}
        self._looked = time.monotonic()

    def finish(self) -> None:
        """Hand out and settle cells until none is left, or one failed fast."""
        while self._waiting or self._held or self._elsewhere:
            self._hand_out()
            for outcome in self._workers.outcomes(WAIT):
                self._settle(outcome)
            failed = State.FAILED in self.states.values()
            if failed and self._demand.fail_fast:
                return
            if self._elsewhere and time.monotonic() - self._looked > AGAIN:
                self._looked = time.monotonic()
                self._waiting.extend(self._elsewhere)
                self._elsewhere.clear()

    def release(self) -> None:
        """Give up the claims still held."""
        while self._held:
            self._claims.release(*self._held.popitem())

    def _hand_out(self) -> None:
        while self._waiting and len(self._held) < self._workers.capacity():
            identity = self._waiting.popleft()
            if self._is_settled(identity):
                continue
            claim = self._claims.take(identity)
            if claim is None:
                self._elsewhere.append(identity)
                self._tell(identity, State.ELSEWHERE)
            elif self._is_settled(identity):  # between the look and the claim
                self._claims.release(identity, claim)
            else:
                self._held[identity] = claim
                self._tell(identity, State.RUNNING)
                self._workers.submit(
                    Order(
                        self._cells[identity],
                        str(self._folder.path.absolute()),
                        self._here.runner,
                        self._since,
                    )
                )

    def _is_settled(self, identity: str) -> bool:
        """Whether the cell is finished, or failed with another runner by now."""
        if self._folder.holds(self._folder.result(identity), self._since):
            self._tell(identity, State.FOUND)
            return True
        failure = self._folder.failure(identity)
        if self._folder.holds(failure, self._here.since):
            text = json.loads(failure.read_bytes())["traceback"]
            self._tell(identity, State.FAILED, text)
            return True
        return False

    def _settle(self, outcome: Outcome) -> None:
        identity = outcome.identity
        if outcome.end in (End.UNWRITABLE, End.OTHER_CODE):
            raise SweepError(
                f"{outcome.text}; what is done is kept, the same command resumes"
            )
        if outcome.end is End.FAILED:
            failure = self._folder.failure(identity)
            if not self._folder.holds(failure, self._here.since):  # a worker died
                cell = self._cells[identity]
                save_failure(self._folder, self._here.runner, cell, outcome.text)
            self._tell(identity, State.FAILED, outcome.text)
        else:
            self._tell(identity, State.DONE)
        self._claims.release(identity, self._held.pop(identity))

    def _tell(self, identity: str, state: State, text: str = "") -> None:
        if self.states[identity] is not state:
            self.states[identity] = state
            self._watch(self._cells[identity], state, text)
