"""All finished cells of a sweep as one table, from what was saved alone."""

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from largeprompt.errors import ResultError
from largeprompt.experiments.sweep.folder import (
    TABLE,
    SweepFolder,
    write_durably,
)
from largeprompt.experiments.sweep.specification import Specification

FORMAT = "largeprompt.sweep-table/1"


def gathered(folder: SweepFolder, sweep: Specification) -> pa.Table:
    """Return the rows of all finished cells, options first, in the order of the sweep.

    Where a result has a column of the name of an option, the result's is kept. The
    table does not depend on who computed what, or when.

    Raises:
        ResultError: No cell is finished, or a file is damaged.
    """
    done = folder.names("cells", ".parquet")
    rows: list[dict[str, Any]] = []
    columns: dict[str, None] = {}
    for identity, cell in sweep.cells.items():
        if identity in done:
            for row in _rows(folder, identity):
                rows.append({**cell.configuration, **row})
                columns |= dict.fromkeys(rows[-1])
    if not rows:
        raise ResultError(f"no cell of the sweep in {folder.path} is finished yet")
    arrays = {name: pa.array([row.get(name) for row in rows]) for name in columns}
    about = {"format": FORMAT, "specification": dict(sweep.content)}
    return pa.table(arrays).replace_schema_metadata({"largeprompt": json.dumps(about)})


def write_table(folder: SweepFolder, sweep: Specification) -> pa.Table:
    """Write `results.parquet` and return it.

    Raises:
        ResultError: As `gathered`, or the directory cannot be written.
    """
    table = gathered(folder, sweep)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    try:
        write_durably(folder.path / TABLE, buffer.getvalue(), folder.path)
    except OSError as error:
        raise ResultError(f"{folder.path} cannot be written: {error}") from error
    return table


def _rows(folder: SweepFolder, identity: str) -> list[dict[str, Any]]:
    path = folder.result(identity)
    try:
        return pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowInvalid) as error:
        raise ResultError(f"{path} is damaged: {error}") from error
