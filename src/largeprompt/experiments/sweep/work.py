"""One cell on a worker: found, computed and saved, or its failure told."""

import contextlib
import dataclasses
import datetime
import enum
import io
import json
import os
import shutil
import socket
import time
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, final

from largeprompt.experiments.sweep.catalogue import experiment_named, module_of
from largeprompt.experiments.sweep.experiment import Row
from largeprompt.experiments.sweep.folder import (
    MANIFEST,
    SweepFolder,
    write_durably,
)
from largeprompt.experiments.sweep.journal import DONE, FAILED, STARTED, note
from largeprompt.experiments.sweep.key import canonical
from largeprompt.experiments.sweep.options import resolved
from largeprompt.experiments.sweep.specification import Cell
from largeprompt.experiments.sweep.version import code_version

FORMAT = "largeprompt.cell/1"


class End(enum.StrEnum):
    """How an order ends."""

    DONE = "done"
    FOUND = "found"  # it was done already
    FAILED = "failed"
    UNWRITABLE = "unwritable"
    OTHER_CODE = "other code"


@final
@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of an order.

    Attributes:
        identity: The cell.
        end: How it ended.
        text: The traceback, or what is wrong.
    """

    identity: str
    end: End
    text: str = ""


@final
@dataclasses.dataclass(frozen=True)
class Order:
    """All that a worker needs to know of a cell; plain JSON data when it travels.

    Attributes:
        cell: The cell.
        directory: The directory of the sweep.
        runner: The runner that asks.
        since: A result of this time (ns) or later is taken, not computed again.
    """

    cell: Cell
    directory: str
    runner: str
    since: int

    def text(self) -> str:
        """Return the order as one line of JSON."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def read(cls, text: str) -> "Order":
        """Return the order that a line of JSON is."""
        content = json.loads(text)
        return cls(**content | {"cell": Cell(**content["cell"])})


class Attempt(contextlib.AbstractContextManager["Attempt"]):
    """Whatever goes wrong inside is kept as text: code of others may fail in any way.

    Interruptions pass.
    """

    failure: str = ""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Keep the traceback of a failure."""
        if isinstance(error, Exception | SystemExit):
            self.failure = "".join(traceback.format_exception(error))
            return True
        return False


def carry_out(order: Order) -> Outcome:
    """Compute a cell unless its result is there, and save result or failure."""
    cell, folder = order.cell, SweepFolder(Path(order.directory))
    identity = cell.identity
    if not (folder.path / MANIFEST).exists():
        text = f"this machine, {socket.gethostname()}, does not see {folder.path}"
        return Outcome(identity, End.UNWRITABLE, text)
    here = code_version(module_of(cell.experiment))
    if here != cell.code:
        text = (
            f"{socket.gethostname()} runs code {here}, the sweep was begun with code "
            f"{cell.code}"
        )
        return Outcome(identity, End.OTHER_CODE, text)
    if folder.holds(folder.result(identity), order.since):
        return Outcome(identity, End.FOUND)
    try:
        note(folder, order.runner, identity, STARTED)
        return _computed(order, folder)
    except OSError as error:
        text = f"{folder.path} cannot be written: {error}"
        return Outcome(identity, End.UNWRITABLE, text)


def save_failure(folder: SweepFolder, runner: str, cell: Cell, text: str) -> None:
    """Write down that a cell failed, and how.

    Raises:
        OSError: It cannot be written.
    """
    content = {**_who(runner), **dataclasses.asdict(cell), "traceback": text}
    path = folder.failure(cell.identity)
    write_durably(path, json.dumps(content, indent=1).encode(), folder.runner(runner))


def _computed(order: Order, folder: SweepFolder) -> Outcome:
    cell, runner, identity = order.cell, order.runner, order.cell.identity
    began = time.perf_counter()
    content = b""
    with Attempt() as attempt:
        experiment = resolved(experiment_named(cell.experiment), cell.configuration)
        rows = experiment.rows(cell.key, folder.checkpoints(identity))
        content = _packed(cell, rows)
    if attempt.failure:
        save_failure(folder, runner, cell, attempt.failure)
        note(folder, runner, identity, FAILED)
        return Outcome(identity, End.FAILED, attempt.failure)
    seconds = time.perf_counter() - began
    scratch = folder.runner(runner)
    write_durably(folder.result(identity), content, scratch)
    record = json.dumps({**_who(runner), "seconds": seconds}).encode()
    write_durably(folder.record(identity), record, scratch, synced=False)
    note(folder, runner, identity, DONE)
    folder.failure(identity).unlink(missing_ok=True)
    shutil.rmtree(folder.checkpoints(identity), ignore_errors=True)
    return Outcome(identity, End.DONE)


def _packed(cell: Cell, rows: list[Row]) -> bytes:
    """Return the file of a result; the same cell and rows give the same bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not rows:
        raise ValueError("a cell must return at least one row; got none")
    about = canonical({"format": FORMAT, **dataclasses.asdict(cell)})
    # all columns at once: pyarrow looks for pandas anew with every array it makes
    batch = pa.RecordBatch.from_struct_array(pa.array(rows))
    table = pa.Table.from_batches([batch]).select(list(rows[0]))
    table = table.replace_schema_metadata({"largeprompt": about})
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _who(runner: str) -> dict[str, Any]:
    return {
        "runner": runner,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "ended": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
