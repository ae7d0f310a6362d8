"""Effects that are known already, so that an interrupted ablation goes on."""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, final

from largeprompt.audit.files import write_whole, written_to
from largeprompt.hf.ablation_attention import HeadName
from largeprompt.hf.ablation_evaluation import Effect


@final
@dataclasses.dataclass(frozen=True)
class EffectStore:
    """One small file per set of heads, named by the hash of all that it depends on.

    Attributes:
        directory: Where they are; made when the first one is written.
        key: What the effects depend on besides the heads.
    """

    directory: Path
    key: Mapping[str, Any]

    def get(self, heads: Collection[HeadName]) -> Effect | None:
        """Return the effect of a set of heads, None where none is known or readable."""
        try:
            return Effect(**json.loads(self._path(heads).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def put(self, heads: Collection[HeadName], effect: Effect) -> None:
        """Write an effect, whole or not at all.

        Raises:
            ResultError: The directory cannot be written to.
        """
        content = json.dumps(dataclasses.asdict(effect))
        write_whole(self._path(heads), content.encode())

    def drop(self) -> None:
        """Delete the effects."""
        if self.directory.exists():
            with written_to(self.directory):
                shutil.rmtree(self.directory)

    def _path(self, heads: Collection[HeadName]) -> Path:
        text = json.dumps([dict(self.key), sorted(heads)], sort_keys=True)
        return self.directory / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
