"""Where the head of an experiment comes from: drawn for every seed, or one from a file.

A source is anything with `draw(generator)` and `description`; the same generator gives
the same head.
"""

import abc
import dataclasses
import hashlib
from pathlib import Path
from typing import Any, Self, final

import safetensors
import safetensors.torch
import torch
from typing_extensions import override

from largeprompt.attention import Head

MATRICES = ("key", "query", "value")


class HeadSource(abc.ABC):
    """What hands out the head of each seed."""

    @abc.abstractmethod
    def draw(self, generator: torch.Generator) -> Head:
        """Return the head of a seed, in float64."""

    @abc.abstractmethod
    def description(self) -> dict[str, Any]:
        """Return what a manifest says of the source."""


@final
@dataclasses.dataclass(frozen=True)
class RandomHeads(HeadSource):
    r"""Heads with normal entries in $U$ and $V$, scaled to given operator norms.

    Attributes:
        dim: $d$, of tokens, queries and values.
        bilinear_norm: The operator norm of $U$, above 0.
        value_norm: The operator norm of $V$, above 0.
    """

    dim: int
    bilinear_norm: float
    value_norm: float

    def __post_init__(self) -> None:
        """Check the dimension and the norms."""
        if self.dim < 1:
            raise ValueError(f"dim must be at least 1; got {self.dim}")
        for name in ("bilinear_norm", "value_norm"):
            if not 0 < (norm := getattr(self, name)) < torch.inf:
                raise ValueError(f"{name} must be finite and above 0; got {norm}")

    @override
    def draw(self, generator: torch.Generator) -> Head:
        return Head(
            key=torch.eye(self.dim, dtype=torch.float64),
            query=_of_norm(self.bilinear_norm, self.dim, generator),
            value=_of_norm(self.value_norm, self.dim, generator),
            scale=1.0,
        )

    @override
    def description(self) -> dict[str, Any]:
        return {"kind": "random", **dataclasses.asdict(self)}


@final
@dataclasses.dataclass(frozen=True, eq=False)
class GivenHead(HeadSource):
    """One head for every seed.

    Attributes:
        head: The head.
        name: What a manifest calls it.
        sha256: The hash of its file; empty when it has none.
    """

    head: Head
    name: str
    sha256: str = ""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read `key`, `query`, `value` and `scale` (one number) from safetensors.

        Raises:
            ValueError: The file is no safetensors file, lacks one of the four, or their
                shapes do not fit.
        """
        content = path.read_bytes()
        try:
            tensors = safetensors.torch.load(content)
        except safetensors.SafetensorError as error:
            raise ValueError(f"{path} must be a safetensors file: {error}") from error
        missing = [name for name in (*MATRICES, "scale") if name not in tensors]
        if missing:
            raise ValueError(
                f"{path} must hold key, query, value and scale; "
                f"got none of the name {missing[0]!r}"
            )
        if tensors["scale"].numel() != 1:
            raise ValueError(
                "scale must be one number; "
                f"got shape {tuple(tensors['scale'].shape)} in {path}"
            )
        for name in (*MATRICES, "scale"):
            if tensors[name].is_complex():
                raise ValueError(f"{name} must be real numbers; got complex in {path}")
        key, query, value = (tensors[name].double() for name in MATRICES)
        head = Head(key, query, value, scale=float(tensors["scale"]))
        return cls(head, path.name, hashlib.sha256(content).hexdigest())

    @override
    def draw(self, generator: torch.Generator) -> Head:
        return self.head

    @override
    def description(self) -> dict[str, Any]:
        shapes = {name: list(getattr(self.head, name).shape) for name in MATRICES}
        return {
            "kind": "given",
            "name": self.name,
            "sha256": self.sha256,
            **shapes,
            "scale": self.head.scale,
        }


def _of_norm(norm: float, dim: int, generator: torch.Generator) -> torch.Tensor:
    matrix = torch.randn(dim, dim, generator=generator, dtype=torch.float64)
    return matrix * (norm / torch.linalg.matrix_norm(matrix, 2))
