"""A compressed layer: exact atoms beside linear sets, for each KV head."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.sets import LinearSets, merge


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Atoms:
    """Tokens kept as they are, those of one KV head after those of another.

    Attributes:
        key: Their keys, as the model cached them.
        value: Their values.
        starts: Head i holds rows `starts[i]` to `starts[i + 1]`; heads may hold
            different numbers, or none.
    """

    key: Float[Tensor, "a k"]
    value: Float[Tensor, "a v"]
    starts: Int64[Tensor, " b+1"]

    @property
    def nbytes(self) -> int:
        """The memory that the atoms hold."""
        return self.key.nbytes + self.value.nbytes + self.starts.nbytes

    def of(self, head: int) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n v"]]:
        """Return one head's keys and values."""
        rows = slice(int(self.starts[head]), int(self.starts[head + 1]))
        return self.key[rows], self.value[rows]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Compact:
    """What is left of a layer's prompt; `b` counts batch entries times KV heads."""

    atoms: Atoms
    sets: LinearSets | None

    @property
    def nbytes(self) -> int:
        """The memory that the compressed layer holds."""
        return self.atoms.nbytes + (0 if self.sets is None else self.sets.nbytes)

    def answer(self, tilt: Float[Tensor, "b g m k"]) -> Answer:
        """Answer as softmax attention over the prompt would: the definition, in torch.

        Atoms are answered exactly, in float32 at least. A head with neither atoms nor
        sets has log-mass minus infinity and output zero.
        """
        tilt = tilt.to(torch.promote_types(tilt.dtype, torch.float32))
        heads = [self._atoms(head, tilt[head]) for head in range(len(tilt))]
        exact = Answer(
            torch.stack([answer.log_mass for answer in heads]),
            torch.stack([answer.output for answer in heads]),
        )
        if self.sets is None:
            return exact
        linear = self.sets.answer(tilt)
        return merge(
            Answer(
                torch.cat([exact.log_mass[..., None], linear.log_mass], -1),
                torch.cat([exact.output[..., None, :], linear.output], -2),
            )
        )

    def _atoms(self, head: int, tilt: Float[Tensor, "g m k"]) -> Answer:
        key, value = (tensor.to(tilt.dtype) for tensor in self.atoms.of(head))
        if len(key) == 0:
            empty = tilt.new_full(tilt.shape[:-1], -torch.inf)
            return Answer(empty, tilt.new_zeros((*tilt.shape[:-1], value.shape[-1])))
        logits = tilt @ key.mT
        return Answer(logits.logsumexp(-1), logits.softmax(-1) @ value)
