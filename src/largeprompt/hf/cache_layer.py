r"""One layer of the cache: compressed segments, then an exact tail.

New tokens join the tail. `fold` puts a segment for each text in its place, which
answers a query as the tail would, approximately. Attention over the layer is the merge
of the segments' answers with exact attention over the tail. While there is no segment
the layer is transformers' own dynamic layer, bit for bit.
"""

import dataclasses
import math
from typing import Any, final

import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin
from typing_extensions import override

from largeprompt.compress.prompt import Rotation
from largeprompt.errors import CacheError, UnsupportedModelError
from largeprompt.hf.cache_answer import folded_attention
from largeprompt.hf.cache_budget import Budget
from largeprompt.hf.cache_segments import Method, Segment
from largeprompt.hf.cache_tail import HELD_OUT, Tail, tails
from largeprompt.kernels import Kernel

OWNER = "largeprompt_layer"  # the attribute by which a key tensor names its layer


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Folding:
    """When and how a layer compresses.

    Attributes:
        method: How tokens are compressed, or indexed.
        budget: What a segment may hold, or a query may read.
        minimum_length: A prompt of fewer tokens stays exact.
        queries: How many of the last queries the method may calibrate on.
        tail_limit: A tail of so many tokens after the prompt is compressed too.
        prompt_length: The prompt's length where it is known beforehand.
        kernel: What decodes; None is the fastest.
    """

    method: Method
    budget: Budget
    minimum_length: float
    queries: int
    tail_limit: int | None
    prompt_length: int | None
    kernel: Kernel | None

    @property
    def never(self) -> bool:
        """Whether nothing is ever compressed."""
        return math.isinf(self.minimum_length)


@final
class FoldingLayer(CacheLayerMixin):
    """The keys and values of one full-attention layer.

    No tensor and no list in it is changed in place: a shallow copy is a clone.

    Args:
        folding: When and how the layer compresses.
        rotate: How the layer's queries move to later positions.
    """

    is_sliding = False
    is_croppable = False  # once it is compressed, and callers ask before

    def __init__(self, folding: Folding, rotate: Rotation | None) -> None:
        super().__init__()
        self.folding, self.rotate = folding, rotate
        self._forget()

    def _forget(self) -> None:
        self.keys = self.values = None
        self.is_initialized = False
        self.segments: list[list[Segment]] = []  # of each text
        self.folded = 0  # positions that the segments stand for
        self.decoding = False  # the prompt is over
        self.waiting = False  # for the attention that belongs to an update
        self.heard: list[Tensor] = []  # queries
        self.valid: Tensor | None = None
        self.scale = 1.0
        self.seconds = 0.0
        self.errors: list[float] = []

    @override
    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self.dtype, self.device = key_states.dtype, key_states.device
        self.keys, self.values = key_states[..., :0, :], value_states[..., :0, :]
        self.is_initialized = True

    @override
    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self.decoding |= key_states.shape[-2] == 1 and self.get_seq_length() > 0
        keys, values = self.tail()
        self.keys = torch.cat([keys, key_states], -2)
        self.values = torch.cat([values, value_states], -2)
        self.waiting = True
        key = self.keys[:]  # a tensor of its own, gone with the forward pass
        setattr(key, OWNER, self)
        return key, self.values

    def tail(self) -> tuple[Tensor, Tensor]:
        """Return the keys and values of the exact tail."""
        assert self.keys is not None, "the layer has seen tokens"
        assert self.values is not None, "the layer has seen tokens"
        return self.keys, self.values

    @property
    def tail_length(self) -> int:
        """The number of positions in the exact tail."""
        return self.tail()[0].shape[-2] if self.is_initialized else 0

    @override
    def get_seq_length(self) -> int:
        return self.folded + self.tail_length

    @override
    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        if self.compresses_before(query_length):
            return query_length, self.get_seq_length()
        return self.tail_length + query_length, self.folded

    @override
    def get_max_length(self) -> int:
        return -1

    @property
    def shortest(self) -> float:
        """The length from which a tail is compressed when that is asked for."""
        limit = self.folding.tail_limit
        if not self.segments or limit is None:
            return self.folding.minimum_length
        return min(limit, self.folding.minimum_length)

    def compresses_before(self, query_length: int) -> bool:
        """Whether the tail is compressed before a pass of so many tokens.

        A pass of several tokens is a prompt or a part of one; the first pass of a
        single token says that the prompt is over.
        """
        limit = self.folding.minimum_length
        if self.decoding:
            later = self.folding.tail_limit
            limit = math.inf if later is None else max(later, self.shortest)
        return query_length == 1 and self.tail_length >= limit

    def attend(self, query: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        """Return the attention of queries to the segments and the tail.

        Args:
            query: The queries of a forward pass, of shape `texts, heads, m, k`.
            mask: Which positions of the tail they see; None is causal.
            scale: Logits are `scale * query . key`.
        """
        wide = torch.promote_types(query.dtype, torch.float32)
        key, value = self.tail()
        tilt = scale * query.to(wide)
        return folded_attention(self.segments, key, value, tilt, mask).to(query.dtype)

    def hear(self, query: Tensor, mask: Tensor | None, scale: float) -> None:
        """Remember the queries of a forward pass and which positions are tokens."""
        self.waiting, self.scale = False, scale
        if self.folding.never or (self.decoding and self.folding.tail_limit is None):
            self.heard, self.valid = [], None
            return
        if mask is not None and mask.dtype != torch.bool:
            raise UnsupportedModelError("a cache that compresses needs a boolean mask")
        self.valid = None if mask is None else mask[:, 0, -1].clone()
        most = self.folding.queries + HELD_OUT
        self.heard = [*self.heard, query[:, :, -most:].detach().clone()]
        if sum(part.shape[2] for part in self.heard) > 2 * most:
            self.heard = [torch.cat(self.heard, 2)[:, :, -most:].clone()]

    def texts(self) -> list[Tail]:
        """Return the tail of each text, as a method of compression is given it.

        Raises:
            CacheError: No query of the tail was remembered.
            UnsupportedModelError: A text has padding elsewhere than on its left.
        """
        if not self.heard:
            raise CacheError(
                "no query of the tail is known; give the cache a tail_limit when the "
                "tokens after its prompt are to be compressed too"
            )
        most = self.folding.queries + HELD_OUT
        query = torch.cat(self.heard, 2)[:, :, -most:]
        return tails(*self.tail(), query, self.valid, self.scale, self.rotate)

    def fold(
        self, segments: list[Segment], errors: list[float], seconds: float
    ) -> None:
        """Put a segment for each text in the place of the tail.

        Args:
            segments: What stands for the tail of each text.
            errors: What the report says of them.
            seconds: What they took.
        """
        before = self.segments or [[] for _ in segments]
        self.segments = [[*old, new] for old, new in zip(before, segments, strict=True)]
        self.folded += self.tail_length
        self.keys, self.values = (t[..., :0, :].clone() for t in self.tail())
        self.heard, self.valid, self.decoding = [], None, True
        self.seconds += seconds
        self.errors = errors

    @property
    def nbytes(self) -> int:
        """The memory that the layer holds; a segment that beams share counts once."""
        if not self.is_initialized:
            return 0
        shared = {id(part): part.held for parts in self.segments for part in parts}
        tensors = [*self.tail(), *self.heard]
        return sum(held.nbytes for held in (*shared.values(), *tensors))

    @property
    def exact_nbytes(self) -> int:
        """The memory that an exact layer would hold."""
        if not self.is_initialized:
            return 0
        return (
            sum(
                tensor.element_size() * math.prod(tensor.shape[:2]) * tensor.shape[3]
                for tensor in self.tail()
            )
            * self.get_seq_length()
        )

    @override
    def reset(self) -> None:
        self._forget()

    @override
    def reorder_cache(self, beam_idx: Tensor) -> None:
        self.batch_select_indices(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat every text."""
        self.batch_select_indices(torch.arange(self._texts).repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep the texts of these numbers, in this order; segments are shared."""
        rows = torch.arange(self._texts)[indices.cpu()]  # numbers, or a boolean choice
        if not self.is_initialized or torch.equal(rows, torch.arange(self._texts)):
            return
        here = rows.to(self.tail()[0].device)
        self.keys, self.values = (t.index_select(0, here) for t in self.tail())
        self.heard = [part.index_select(0, here) for part in self.heard]
        self.valid = None if self.valid is None else self.valid.index_select(0, here)
        if self.segments:
            self.segments = [self.segments[row] for row in rows.tolist()]

    @property
    def _texts(self) -> int:
        return len(self.tail()[0]) if self.is_initialized else 0

    def crop(self, tokens_to_remove: int) -> None:
        """Take the last tokens back, if they are still in the exact tail.

        Args:
            tokens_to_remove: Minus their number, as transformers has it.

        Raises:
            CacheError: Some of them are compressed.
        """
        count = -tokens_to_remove
        if count < 0:
            raise ValueError(
                f"crop takes minus the number of tokens; got {tokens_to_remove}"
            )
        if count > self.tail_length:
            raise CacheError(
                f"the last {count} tokens cannot be taken back: all but "
                f"{self.tail_length} are compressed"
            )
        if count:
            self.keys, self.values = (t[..., :-count, :] for t in self.tail())
            heard = [torch.cat(self.heard, 2)[:, :, :-count]] if self.heard else []
            self.heard = [part for part in heard if part.shape[2]]
            self.valid = None if self.valid is None else self.valid[:, :-count]
