"""The blocks of an audit that are done, so that an interrupted one goes on.

A block is one layer on one text. Its rows are a parquet file that appears whole or not
at all; `key.json` says which audit the blocks belong to.
"""

import dataclasses
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, final

import pyarrow as pa
import pyarrow.parquet as pq

from largeprompt.audit.files import write_whole, written_to
from largeprompt.audit.rows import Row
from largeprompt.audit.tables import ROW_SCHEMA
from largeprompt.errors import ResultError

KEY = "key.json"


@final
@dataclasses.dataclass(frozen=True)
class Blocks:
    """Finished blocks in a directory, which is made when the first one is written."""

    directory: Path
    key: str

    @classmethod
    def open(
        cls, directory: Path | str, key: Mapping[str, Any], *, overwrite: bool = False
    ) -> Self:
        """Return the blocks of the audit that `key` describes.

        Args:
            directory: Where they are, or will be.
            key: All that the rows depend on, as JSON.
            overwrite: Whether blocks of another audit are dropped.

        Raises:
            ResultError: The directory holds blocks of another audit.
        """
        directory, text = Path(directory), json.dumps(dict(key), indent=2)
        blocks = cls(directory, text + "\n")
        if (directory / KEY).exists():
            if (directory / KEY).read_text("utf-8") == blocks.key:
                return blocks
            if not overwrite:
                raise ResultError(
                    f"{directory} holds an unfinished audit of another model, text, "
                    "version or set of options; run that one again to finish it, or "
                    "ask to overwrite"
                )
            drop(directory)
        return blocks

    def get(self, name: str) -> list[Row] | None:
        """Return the rows of a block, None where it is not done."""
        path = self.directory / f"{name}.parquet"
        if not path.exists():
            return None
        try:
            table = pq.read_table(path, schema=ROW_SCHEMA)
        except (pa.ArrowInvalid, OSError) as error:
            raise ResultError(
                f"{path} is damaged ({error}); delete {self.directory}"
            ) from error
        return table.to_pylist()

    def put(self, name: str, rows: list[Row]) -> None:
        """Write the rows of a block.

        Raises:
            ResultError: The directory cannot be written to.
        """
        if not (self.directory / KEY).exists():
            write_whole(self.directory / KEY, self.key.encode())
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(rows, ROW_SCHEMA), sink)
        path = self.directory / f"{name}.parquet"
        write_whole(path, sink.getvalue().to_pybytes())


def drop(directory: Path) -> None:
    """Delete a directory of blocks, if it is there.

    Raises:
        ResultError: It cannot be deleted.
    """
    if directory.exists():
        with written_to(directory):
            shutil.rmtree(directory)
