"""What stands in a layer for tokens that are compressed, or kept and indexed."""

import abc
import dataclasses
from typing import Protocol, final

import torch
from jaxtyping import Float, Float64
from torch import Tensor
from typing_extensions import override

from largeprompt.audit.limits import Answer
from largeprompt.compress.compact import Compact
from largeprompt.compress.indexed import Indexed
from largeprompt.compress.indexing import ClusterIndex
from largeprompt.compress.prompt import Compressor, LayerPrompt
from largeprompt.kernels import Kernel, ReferenceKernel, fastest
from largeprompt.kernels.tail import Tail as Later

Method = Compressor | ClusterIndex


class Held(Protocol):
    """Anything whose memory is counted."""

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        ...


class Segment(abc.ABC):
    """Tokens of one text and layer, answered for together; `b` counts KV heads."""

    @property
    @abc.abstractmethod
    def held(self) -> Held:
        """What is kept of the tokens."""

    @abc.abstractmethod
    def answer(self, tilt: Float[Tensor, "b g m k"]) -> Answer:
        """Answer `m` tilts for each query head."""

    @abc.abstractmethod
    def decode(self, tilt: Float[Tensor, "b g k"], later: Later | None) -> Answer:
        """Answer one query step over the tokens and later ones."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class CompactSegment(Segment):
    """Tokens that are dropped: atoms and linear sets are left."""

    compact: Compact
    kernel: Kernel

    @property
    @override
    def held(self) -> Held:
        return self.compact

    @override
    def answer(self, tilt: Float[Tensor, "b g m k"]) -> Answer:
        return self.compact.answer(tilt)

    @override
    def decode(self, tilt: Float[Tensor, "b g k"], later: Later | None) -> Answer:
        return self.kernel.decode(tilt, self.compact, later)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class IndexedSegment(Segment):
    """Tokens that are kept, of which a query reads few.

    Attributes:
        indexed: The tokens by cluster.
        keys: How many keys of a KV head one query step may read.
        kernel: What reads them.
    """

    indexed: Indexed
    keys: int
    kernel: Kernel

    @property
    @override
    def held(self) -> Held:
        return self.indexed

    @override
    def answer(self, tilt: Float[Tensor, "b g m k"]) -> Answer:
        steps = [self.decode(step, None) for step in tilt.unbind(2)]
        return Answer(
            torch.stack([step.log_mass for step in steps], 2),
            torch.stack([step.output for step in steps], 2),
        )

    @override
    def decode(self, tilt: Float[Tensor, "b g k"], later: Later | None) -> Answer:
        return self.kernel.decode_indexed(tilt, self.indexed, self.keys, later)


def segment(
    method: Method,
    prompt: LayerPrompt,
    tokens: Float64[Tensor, " b"],
    kernel: Kernel | None,
) -> Segment:
    """Compress or index the prompt of one text and layer.

    Args:
        method: How.
        prompt: The prompt.
        tokens: What each KV head may hold, where the prompt is compressed; or how many
            of its keys a query may read, where it is indexed: the least of them.
        kernel: What decodes; None is the fastest for the prompt's device and dtype.

    Raises:
        ValueError: The tokens are too few for the method.
    """
    if kernel is None:
        single = prompt.key.dtype != torch.float64
        kernel = fastest(prompt.key.device) if single else ReferenceKernel()
    if isinstance(method, ClusterIndex):
        return IndexedSegment(method.index(prompt), int(tokens.min()), kernel)
    return CompactSegment(method.compress(prompt, tokens), kernel)
