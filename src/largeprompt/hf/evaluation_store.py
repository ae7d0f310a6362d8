"""Finished cells of an evaluation: an interrupted one goes on from them."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any, final

from largeprompt.audit.files import write_whole
from largeprompt.hf.evaluation_cell import Cell


@final
@dataclasses.dataclass(frozen=True)
class CellStore:
    """A folder with a file for each cell; a file appears whole or not at all."""

    folder: Path

    def find(self, key: dict[str, Any]) -> Cell | None:
        """Return the cell of a key, None if it is not there or cannot be read."""
        try:
            content = json.loads(self._path(key).read_text("utf-8"))
            return Cell(**content["cell"]) if content["key"] == key else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, key: dict[str, Any], cell: Cell) -> None:
        """Write a cell under a key of JSON values.

        Raises:
            ResultError: The folder cannot be written to.
        """
        content = {"key": key, "cell": dataclasses.asdict(cell)}
        write_whole(self._path(key), json.dumps(content).encode())

    def _path(self, key: dict[str, Any]) -> Path:
        text = json.dumps(key, sort_keys=True)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
