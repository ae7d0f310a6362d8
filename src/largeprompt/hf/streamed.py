"""Attention in blocks of rows, for masks that would be n x n if they were spread out.

transformers gives `sdpa` a dense mask in sliding layers, which PyTorch turns into a
float: five bytes a pair of tokens, 5 GiB at 32,768. Here a sliding layer gets a mask
that is evaluated a block of rows at a time, against the keys in reach only. Layers
that need no mask go to transformers' own function, bit for bit.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ROWS = 512  # queries at a time

MaskFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""transformers' own: batch, head, query and key indices -> whether it is seen."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class RowMask:
    """The mask of one unpadded text, evaluated where it is asked for.

    Attributes:
        function: Which query sees which key.
        n: The number of tokens.
        reach: How many tokens before its own a query may see; all when None.
        ahead: Whether it may see as many after its own.
        device: Where the mask is needed.
    """

    function: MaskFunction
    n: int
    reach: int | None
    ahead: bool
    device: torch.device

    def rows(self, start: int, stop: int) -> tuple[slice, Bool[Tensor, "1 1 r k"]]:
        """Return the keys in reach of some queries, and which of them each sees."""
        reach = self.n if self.reach is None else self.reach
        low, high = max(0, start - reach), stop
        if self.ahead:
            high = min(self.n, stop + reach)
        return slice(low, high), self._seen(range(start, stop), range(low, high))

    def sees(self, query: int, keys: range) -> bool:
        """Whether a query sees any of the keys."""
        return bool(self._seen(range(query, query + 1), keys).any())

    def _seen(self, queries: range, keys: range) -> Bool[Tensor, "1 1 r k"]:
        one = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=self.device)
        rows = torch.arange(queries.start, queries.stop, device=self.device)
        columns = torch.arange(keys.start, keys.stop, device=self.device)
        seen = self.function(one, one, rows[:, None], columns[None, :])
        return seen.expand(1, 1, len(rows), len(columns))


def streamed_mask(
    batch_size: int, q_length: int, kv_length: int, **options: Any
) -> Tensor | RowMask | None:
    """Return what transformers' `sdpa_mask` does, unspread where a window allows it."""
    width = options.get("local_size")
    offsets = options.get("q_offset", 0) or options.get("kv_offset", 0)
    one_text = batch_size == 1 and q_length == kv_length and not offsets
    padding = options.get("attention_mask")
    if (
        one_text
        and (padding is None or bool(padding.all()))
        and width is not None
        and width < kv_length
        and not options.get("use_vmap")
    ):
        device = torch.device(options.get("device", "cpu"))
        function = options["mask_function"]
        ahead = RowMask(function, kv_length, width, False, device).sees(0, range(1, 2))
        mask = RowMask(function, kv_length, width, ahead, device)
        if not mask.sees(kv_length - 1, range(kv_length - 1 - width)):
            return mask
    return sdpa_mask(
        batch_size=batch_size, q_length=q_length, kv_length=kv_length, **options
    )


def streamed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | RowMask | None,
    softcap: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Return attention as `sdpa` gives it, and for soft-capped logits too.

    The answer is transformers' own, bit for bit, where the mask is None or a tensor and
    the logits are not capped; otherwise equal to rounding.
    """
    if softcap is None and not isinstance(attention_mask, RowMask):
        return sdpa_attention_forward(
            module, query, key, value, attention_mask, **options
        )
    answers = []
    for rows, keys, seen in _row_blocks(module, query, key, attention_mask):
        here = query[:, :, rows], key[:, :, keys], value[:, :, keys], seen
        if softcap is None:
            answers.append(sdpa_attention_forward(module, *here, **options)[0])
        else:
            answers.append(capped(*here, softcap, options.get("scaling")))
    return torch.cat(answers, 1), None


def _row_blocks(
    module: nn.Module, query: Tensor, key: Tensor, mask: Tensor | RowMask | None
) -> Iterator[tuple[slice, slice, Tensor]]:
    n = key.shape[2]
    if mask is None:
        ahead = not getattr(module, "is_causal", True)
        function = _every_pair if ahead else _causal
        mask = RowMask(function, n, None, ahead, key.device)
    for start in range(0, query.shape[2], ROWS):
        stop = min(start + ROWS, query.shape[2])
        if isinstance(mask, RowMask):
            keys, seen = mask.rows(start, stop)
        else:
            keys, seen = slice(0, n), mask[:, :, start:stop]
        yield slice(start, stop), keys, seen


def _causal(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return key <= query


def _every_pair(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    return (key >= 0) & (query >= 0)


def capped(
    query: Float[Tensor, "b h r k"],
    key: Float[Tensor, "b hkv n k"],
    value: Float[Tensor, "b hkv n v"],
    seen: Bool[Tensor, "b 1 r n"],
    softcap: float,
    scaling: float | None,
) -> Float[Tensor, "b r h v"]:
    """Return attention over capped logits, its softmax in float32."""
    groups = query.shape[1] // key.shape[1]
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    logits = scale * query @ key.repeat_interleave(groups, 1).mT
    logits = softcap * torch.tanh(logits / softcap)
    weights = logits.float().masked_fill(~seen, -torch.inf).softmax(-1)
    weights = weights.nan_to_num(nan=0.0).to(value.dtype)  # a pad may see nothing
    return (weights @ value.repeat_interleave(groups, 1)).transpose(1, 2)
