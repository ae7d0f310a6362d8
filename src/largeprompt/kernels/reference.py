"""Decoding in plain torch, by the definitions."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.audit.limits import Answer
from largeprompt.compress.compact import Compact
from largeprompt.compress.indexed import Indexed
from largeprompt.compress.sets import merge
from largeprompt.kernels.base import Kernel
from largeprompt.kernels.tail import Tail


@final
@dataclasses.dataclass(frozen=True)
class ReferenceKernel(Kernel):
    """The definitions on any device: tokens as precise as the tilt, sets in float32."""

    @override
    def decode(
        self, tilt: Float[Tensor, "b g k"], compact: Compact, tail: Tail | None = None
    ) -> Answer:
        return joined(compact_answer(compact, tilt), *tail_answers(tilt, tail))

    @override
    def decode_indexed(
        self,
        tilt: Float[Tensor, "b g k"],
        indexed: Indexed,
        keys: int,
        tail: Tail | None = None,
    ) -> Answer:
        later = tail_answers(tilt, tail)
        nothing = torch.zeros_like(indexed.sizes, dtype=torch.bool)
        always = joined(indexed.read(tilt, nothing), *later)
        sets = indexed.sets.answer(tilt[:, :, None])
        predicted = sets.log_mass[:, :, 0]
        opened = indexed.choose(predicted, always.log_mass, keys)
        closed = Answer(
            predicted.masked_fill(opened[:, None], -torch.inf), sets.output[:, :, 0]
        )
        return joined(indexed.read(tilt, opened), *later, merge(closed))


def compact_answer(compact: Compact, tilt: Float[Tensor, "b g k"]) -> Answer:
    """Answer for what is left of the prompt."""
    answer = compact.answer(tilt[:, :, None])
    return Answer(answer.log_mass[:, :, 0], answer.output[:, :, 0])


def tail_answers(tilt: Float[Tensor, "b g k"], tail: Tail | None) -> list[Answer]:
    """Answer for the later tokens, if any."""
    return [] if tail is None else [compact_answer(Compact(tail.atoms(), None), tilt)]


def joined(*answers: Answer) -> Answer:
    """Merge the answers of disjoint sets; where all are empty the output is zero."""
    log_mass = torch.stack([answer.log_mass for answer in answers], -1)
    output = torch.stack([answer.output.nan_to_num(0) for answer in answers], -2)
    merged = merge(Answer(log_mass, output))
    return Answer(merged.log_mass, merged.output.nan_to_num(0))
