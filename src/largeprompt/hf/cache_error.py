"""How far a compressed tail's answers are from the tail's own."""

from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.hf.cache_answer import exact_answer
from largeprompt.hf.cache_tail import Tail


class Answering(Protocol):
    """What answers for the tokens of a tail."""

    def answer(self, tilt: Float[Tensor, "b g m k"]) -> Answer:
        """Answer `m` tilts for each query head."""
        ...


def held_out_error(compressed: Answering, tail: Tail) -> Float[Tensor, "b g"]:
    """Return the relative error of each query head's output on held-out queries.

    The error of one query is the distance of the two outputs over the norm of the exact
    one; a head's error is the median over its queries, NaN where none was held out.

    Args:
        compressed: What stands for the tail.
        tail: The tail itself.
    """
    tilt = tail.held_out
    if tilt.shape[2] == 0:
        return tilt.new_full(tilt.shape[:2], torch.nan)
    exact = exact_answer(tilt, tail.prompt.key, tail.prompt.value).output
    wrong = (compressed.answer(tilt).output - exact).norm(dim=-1)
    return (wrong / exact.norm(dim=-1)).median(-1).values
