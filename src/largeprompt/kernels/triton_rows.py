"""Exact attention over listed rows on a GPU: Triton, one program for a run of them."""

from typing import Any

import triton
import triton.language as tl
from jaxtyping import Float, Int64
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.sets import merge

BLOCK = 32  # rows a program holds at a time
RUN = 256  # rows a program reads in all
SMALLEST = 16  # what a matrix product on the GPU asks of every side


@triton.jit
def read_listed_rows(
    tilt,
    key,
    value,
    listed,
    counts,
    log_mass,
    output,
    groups,
    room,
    runs,
    width: tl.constexpr,
    value_width: tl.constexpr,
    padded_groups: tl.constexpr,
    padded_width: tl.constexpr,
    padded_value_width: tl.constexpr,
    block: tl.constexpr,
    run_length: tl.constexpr,
):
    """Answer every tilt of one KV head over one run of its listed rows."""
    head, run = tl.program_id(0), tl.program_id(1)
    g = tl.arange(0, padded_groups)
    j = tl.arange(0, padded_width)
    i = tl.arange(0, padded_value_width)
    u = tl.load(
        tilt + (head * groups + g[:, None]) * width + j[None, :],
        mask=(g[:, None] < groups) & (j[None, :] < width),
        other=0.0,
    )
    count = tl.load(counts + head)
    peak = tl.full([padded_groups], -1e38, tl.float32)
    total = tl.zeros([padded_groups], tl.float32)
    mean = tl.zeros([padded_groups, padded_value_width], tl.float32)
    todo = tl.minimum(count - run * run_length, run_length)
    for start in range(0, todo, block):
        place = run * run_length + start + tl.arange(0, block)
        inside = place < count
        row = tl.load(listed + head * room + place, mask=inside, other=0)
        k = tl.load(
            key + row[:, None] * width + j[None, :],
            mask=inside[:, None] & (j[None, :] < width),
            other=0.0,
        ).to(tl.float32)
        logits = tl.dot(u, tl.trans(k), input_precision="ieee")
        logits = tl.where(inside[None, :], logits, -float("inf"))
        highest = tl.maximum(peak, tl.max(logits, 1))
        shrink = tl.exp(peak - highest)
        weight = tl.exp(logits - highest[:, None])
        v = tl.load(
            value + row[:, None] * value_width + i[None, :],
            mask=inside[:, None] & (i[None, :] < value_width),
            other=0.0,
        ).to(tl.float32)
        total = total * shrink + tl.sum(weight, 1)
        added = tl.dot(weight, v, input_precision="ieee")
        mean = mean * shrink[:, None] + added
        peak = highest
    mass = tl.where(total > 0, peak + tl.log(tl.maximum(total, 1e-38)), -float("inf"))
    place = (head * groups + g) * runs + run
    tl.store(log_mass + place, mass, mask=g < groups)
    tl.store(
        output + place[:, None] * value_width + i[None, :],
        mean / tl.maximum(total, 1e-38)[:, None],
        mask=(g[:, None] < groups) & (i[None, :] < value_width),
    )


def answer_listed(
    tilt: Float[Tensor, "b g k"],
    key: Float[Tensor, "a k"],
    value: Float[Tensor, "a v"],
    listed: Int64[Tensor, "b m"],
    counts: Int64[Tensor, " b"],
) -> Answer:
    """Answer softmax attention of each head over the first `counts` rows it lists."""
    heads, groups, width = tilt.shape
    value_width, room = value.shape[-1], listed.shape[1]
    runs = max(-(-room // RUN), 1)
    log_mass = tilt.new_empty((heads, groups, runs))
    output = tilt.new_empty((heads, groups, runs, value_width))
    constants: dict[str, Any] = {  # compiled in; they depend on the layer alone
        "width": width,
        "value_width": value_width,
        "padded_groups": padded(groups),
        "padded_width": padded(width),
        "padded_value_width": padded(value_width),
        "block": BLOCK,
        "run_length": RUN,
    }
    read_listed_rows[(heads, runs)](
        tilt.contiguous(),
        key.contiguous(),
        value.contiguous(),
        listed.contiguous(),
        counts.contiguous(),
        log_mass,
        output,
        groups,
        room,
        runs,
        **constants,
    )
    answer = merge(Answer(log_mass, output))
    return Answer(answer.log_mass, answer.output.nan_to_num(0))


def padded(size: int) -> int:
    """Return the next power of two that a matrix product on the GPU takes."""
    return max(SMALLEST, 1 << (size - 1).bit_length())
