"""Attention over what a layer of the cache holds: its segments, and its exact tail."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.sets import merge
from largeprompt.hf.cache_segments import Segment
from largeprompt.kernels.tail import Tail as Later

BLOCK = 256  # queries answered at a time: memory does not grow with the square of them


def folded_attention(
    segments: Sequence[Sequence[Segment]],
    key: Float[Tensor, "t h n k"],
    value: Float[Tensor, "t h n v"],
    tilt: Float[Tensor, "t hq m k"],
    mask: Bool[Tensor, "t 1 m n"] | None,
) -> Float[Tensor, "t m hq v"]:
    """Answer tilts by segments and an exact tail, merged in log space.

    Logits, sums and the output have the dtype of the tilts.

    Args:
        segments: What each of the `t` texts has folded.
        key: The keys of the tail, the queries' own among them.
        value: Their values.
        tilt: The queries of the tail's last `m` positions, times the scale.
        mask: Which positions of the tail each query sees; None is causal.
    """
    outputs = []
    for text, parts in enumerate(segments):
        packed = tilt[text].unflatten(0, (key.shape[1], -1))  # h g m k
        seen = None if mask is None else mask[text, 0]
        if tilt.shape[2] == 1 and (seen is None or bool(seen.all())):
            output = _step(parts, packed[:, :, 0], key[text], value[text])[:, :, None]
        else:
            output = _pass(parts, packed, key[text], value[text], seen)
        outputs.append(output.flatten(0, 1).transpose(0, 1))
    return torch.stack(outputs).to(tilt.dtype)


def exact_answer(
    tilt: Float[Tensor, "h g m k"],
    key: Float[Tensor, "h n k"],
    value: Float[Tensor, "h n v"],
    seen: Bool[Tensor, "m n"] | None = None,
) -> Answer:
    """Answer by softmax attention over the keys that each query sees; None is all."""
    logits = torch.einsum("hgmk,hnk->hgmn", tilt, key.to(tilt.dtype))
    if seen is not None:
        logits = logits.masked_fill(~seen, -torch.inf)
    weights = logits.softmax(-1)
    output = torch.einsum("hgmn,hnv->hgmv", weights, value.to(tilt.dtype))
    return Answer(logits.logsumexp(-1), output)


def _step(
    parts: Sequence[Segment],
    tilt: Float[Tensor, "h g k"],
    key: Float[Tensor, "h n k"],
    value: Float[Tensor, "h n v"],
) -> Float[Tensor, "h g v"]:
    """Answer one query step; the kernel of the last segment reads the tail too."""
    lengths = torch.full((len(key),), key.shape[1], device=key.device)
    *earlier, last = parts
    answers = [part.decode(tilt, None) for part in earlier]
    answers.append(last.decode(tilt, Later(key, value, lengths)))
    return answers[0].output if len(answers) == 1 else _merged(answers)


def _pass(
    parts: Sequence[Segment],
    tilt: Float[Tensor, "h g m k"],
    key: Float[Tensor, "h n k"],
    value: Float[Tensor, "h n v"],
    seen: Bool[Tensor, "m n"] | None,
) -> Float[Tensor, "h g m v"]:
    """Answer several queries, a block of them at a time."""
    m, n = tilt.shape[2], key.shape[1]
    if seen is None:  # causal
        seen = torch.ones(m, n, dtype=torch.bool, device=key.device).tril(n - m)
    blocks = []
    for block, rows in zip(tilt.split(BLOCK, 2), seen.split(BLOCK), strict=True):
        answers = [part.answer(block) for part in parts]
        blocks.append(_merged([*answers, exact_answer(block, key, value, rows)]))
    return torch.cat(blocks, 2)


def _merged(answers: Sequence[Answer]) -> Float[Tensor, "*b v"]:
    """Return the output over disjoint sets of tokens."""
    log_mass = torch.stack([answer.log_mass for answer in answers], -1)
    output = torch.stack([answer.output for answer in answers], -2)
    return merge(Answer(log_mass, output)).output
