"""Where a cell's random numbers come from: a counter, keyed by its configuration."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

if TYPE_CHECKING:
    import torch


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: keys sorted, no space, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


@final
@dataclasses.dataclass(frozen=True)
class Key:
    """The source of all draws of a cell: a function of (configuration, step) alone.

    Neither the worker that runs a cell, nor what it ran before, nor the version of the
    code changes what is drawn; the generators of different steps are independent.

    Attributes:
        words: The two words that key the counter.

    Source: Philox 4x64, Salmon, Moraes, Dror and Shaw (2011), [salmon:11].
    """

    words: tuple[int, int]

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> Self:
        """Return the key of a configuration, plain JSON data.

        A part of a cell's configuration gives what cells share: heads that are drawn
        from the key of their seed and norms are the same at every prompt length.
        """
        content = digest(dict(configuration))
        return cls((int(content[:16], 16), int(content[16:32], 16)))

    def number(self, step: int) -> int:
        """Return the whole number of a step, uniform from 0 to 2^63 - 1.

        Raises:
            ValueError: `step` is negative.
        """
        if step < 0:
            raise ValueError(f"step must be at least 0; got {step}")
        counter = np.array([0, step, 0, 0], dtype=np.uint64)
        bits = np.random.Philox(key=np.array(self.words, np.uint64), counter=counter)
        return int(bits.random_raw()) >> 1

    def generator(self, step: int) -> "torch.Generator":
        """Return the generator of a step, a number from 0 on.

        Raises:
            ValueError: `step` is negative.
        """
        import torch  # what only lists cells does without it

        return torch.Generator().manual_seed(self.number(step))
