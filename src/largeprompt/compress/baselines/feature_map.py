"""Maps of tokens to features, in place of softmax: measured on captured tokens only.

Their answers have another form than a linear set, so no cache holds them; they are here
to be compared with, beside the same atoms and at the same bytes.
"""

import abc
import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.baselines.keeping import (
    atoms_of,
    highest,
    sinks_and_window,
    token_bytes,
    tokens_kept,
)
from largeprompt.compress.baselines.scores import pooled_weights
from largeprompt.compress.compact import Compact
from largeprompt.compress.prompt import LayerPrompt
from largeprompt.compress.sets import merge


class Features(abc.ABC):
    """What a map holds of the tokens of one KV head."""

    @property
    @abc.abstractmethod
    def nbytes(self) -> int:
        """The memory it holds."""

    @abc.abstractmethod
    def answer(self, tilt: Float[Tensor, "g m k"]) -> Answer:
        """Answer for the tokens: log-mass `g m` and output `g m v`, approximately."""


class FeatureMap(abc.ABC):
    """A method; subclasses are final frozen dataclasses of its settings."""

    @abc.abstractmethod
    def width(self, prompt: LayerPrompt, size: float) -> int:
        """Return how many features `size` bytes hold."""

    @abc.abstractmethod
    def features(
        self,
        key: Float[Tensor, "n k"],
        value: Float[Tensor, "n v"],
        tilt: Float[Tensor, "m k"],
        width: int,
    ) -> Features:
        """Return what is held of the tokens, given tilts that were seen."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Mapped:
    """Atoms beside the features of the rest, for each KV head."""

    atoms: Compact
    rest: tuple[Features, ...]

    @property
    def nbytes(self) -> int:
        """The memory that atoms and features hold."""
        return self.atoms.nbytes + sum(features.nbytes for features in self.rest)

    def answer(self, tilt: Float[Tensor, "b g m k"]) -> Answer:
        """Answer as softmax attention over the prompt would, approximately."""
        exact = self.atoms.answer(tilt)
        linear = [f.answer(u) for f, u in zip(self.rest, tilt.float(), strict=True)]
        masses = torch.stack([answer.log_mass for answer in linear])
        outputs = torch.stack([answer.output for answer in linear])
        return merge(
            Answer(
                torch.stack([exact.log_mass, masses], -1),
                torch.stack([exact.output, outputs], -2),
            )
        )


def mapped(
    method: FeatureMap,
    prompt: LayerPrompt,
    budget: Float[Tensor, " b"],
    *,
    share: float = 0.5,
    window: int = 64,
    sinks: int = 4,
) -> Mapped:
    """Keep the tokens SnapKV would in half of the budget, map the rest with the other.

    Args:
        method: The map.
        prompt: The layer's prompt.
        budget: What each KV head may hold, in tokens; the least decides the width.
        share: The part of the budget that the features take.
        window: Last tokens kept, which also observe.
        sinks: First tokens kept.

    Raises:
        ValueError: The budget is too small for sinks and window, or holds every token.
    """
    if bool((budget >= prompt.valid.sum(-1)).any()):
        raise ValueError(
            "a map needs tokens that are not kept; "
            f"got a budget of {float(budget.max()):.1f} tokens"
        )
    size = share * token_bytes(prompt) * float(budget.min())
    width = method.width(prompt, size)
    count = tokens_kept(prompt, budget, least=sinks + window, reserved=size)
    scores = pooled_weights(prompt, window, 5)
    always = sinks_and_window(prompt.valid, sinks, window)
    kept = highest(scores, prompt.valid, always, count)
    tilt = prompt.scale * prompt.query.float().flatten(1, 2)
    rest = tuple(
        method.features(key[tokens].float(), value[tokens].float(), u, width)
        for key, value, tokens, u in zip(
            prompt.key, prompt.value, prompt.valid & ~kept, tilt, strict=True
        )
    )
    return Mapped(Compact(atoms_of(prompt, kept), None), rest)
