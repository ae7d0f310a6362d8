r"""The default method: exact atoms, and the rest as its calibrated linear limit.

Each KV head keeps the first tokens, a recent window and the tokens that matter most to
recent queries. Everything else becomes one set whose log-mass and output have the form
of the linear limit, with coefficients fitted to what the prompt's own last queries,
moved to the positions of later ones, see of it.
"""

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from typing_extensions import override

from largeprompt.compress.bulk import calibrated_set, empty_set
from largeprompt.compress.calibration import Sight, look
from largeprompt.compress.compact import Atoms, Compact
from largeprompt.compress.partition import ends
from largeprompt.compress.prompt import Compressor, LayerPrompt
from largeprompt.compress.sets import LinearSets
from largeprompt.compress.summary import summarise

_Choice = tuple[Bool[Tensor, " n"], LinearSets | None]  # kept, and what stands for more


@final
@dataclasses.dataclass(frozen=True, eq=False)
class CalibratedLimit(Compressor):
    """Sinks, window and scored atoms beside one calibrated linear set per KV head.

    A head kept exact beside compressed ones of its layer also carries an empty set.

    Attributes:
        sinks: First tokens kept.
        window: Last tokens kept.
        rank: Directions of the set; a set weighs about `rank + 3` tokens of float32.
        ridge: Penalty on a response that leaves its Gaussian value.
        queries: How many of the prompt's last queries are calibrated on.
        ahead: How far those queries are moved to later positions, each in turn; where
            the prompt cannot rotate them they stay where they are.
    """

    sinks: int = 4
    window: int = 32
    rank: int = 24
    ridge: float = 0.1
    queries: int = 128
    ahead: tuple[int, ...] = (128, 256, 512)

    @override
    def compress(self, prompt: LayerPrompt, budget: Float[Tensor, " b"]) -> Compact:
        return self.compress_each(prompt, [budget])[0]

    @override
    def compress_each(
        self, prompt: LayerPrompt, budgets: Sequence[Float[Tensor, " b"]]
    ) -> list[Compact]:
        counts = [
            [self._atoms(prompt, head, float(budget[head])) for budget in budgets]
            for head in range(len(prompt.key))
        ]
        heads = [self._head(prompt, head, each) for head, each in enumerate(counts)]
        return [
            self._together(prompt, list(choice)) for choice in zip(*heads, strict=True)
        ]

    def _together(self, prompt: LayerPrompt, heads: list[_Choice]) -> Compact:
        """Put what the KV heads keep and the sets beside it into one layer."""
        counts = [int(kept.sum()) for kept, _ in heads]
        atoms = Atoms(
            torch.cat([prompt.key[i][kept] for i, (kept, _) in enumerate(heads)]),
            torch.cat([prompt.value[i][kept] for i, (kept, _) in enumerate(heads)]),
            torch.tensor([0, *counts], device=prompt.key.device).cumsum(0),
        )
        if all(one is None for _, one in heads):
            return Compact(atoms, None)
        sets = [self._nothing(prompt) if one is None else one for _, one in heads]
        names = [field.name for field in dataclasses.fields(LinearSets)]
        stacked = {
            name: torch.stack([getattr(s, name) for s in sets]) for name in names
        }
        return Compact(atoms, LinearSets(**stacked))

    def _head(
        self, prompt: LayerPrompt, head: int, counts: list[int | None]
    ) -> list[_Choice]:
        """Return, for each number of atoms, what one KV head keeps and its set."""
        valid = prompt.valid[head]
        fewer = [count for count in counts if count is not None]
        if not fewer:
            return [(valid, None)] * len(counts)
        key, value = prompt.key[head][valid].float(), prompt.value[head][valid].float()
        tilt, hidden = self._tilts(prompt, head, len(key))
        sight = look(tilt, key, hidden)
        always = ends(len(key), self.sinks, self.window).to(key.device)
        scores = importance(sight, value).masked_fill(always, torch.inf)
        order = scores.sort(descending=True, stable=True).indices
        fewer = [max(count, int(always.sum())) for count in fewer]
        seen = sight.nested(order, fewer, value)
        position = valid.nonzero()[:, 0]
        choices = list[_Choice]()
        for count, (beside, rest) in zip(fewer, seen, strict=True):
            dropped = torch.ones_like(always).index_fill(0, order[:count], False)
            summary = summarise(key, value, dropped)
            one = calibrated_set(tilt, summary, rest, beside, self.rank, self.ridge)
            kept = torch.zeros_like(valid).index_fill(0, position[~dropped], True)
            choices.append((kept, one))
        return choices + [(valid, None)] * (len(counts) - len(fewer))

    def _atoms(self, prompt: LayerPrompt, head: int, budget: float) -> int | None:
        """Return how many atoms the budget leaves beside a set; None keeps the head."""
        if budget >= int(prompt.valid[head].sum()):
            return None
        token = prompt.key.shape[-1] + prompt.value.shape[-1]
        token *= prompt.key.element_size()
        weight = (self._nothing(prompt).nbytes + 16) / token  # two rows of `starts`
        needed = self.sinks + self.window + weight
        if budget < needed:
            raise ValueError(
                f"a KV head with {self.sinks} sinks, a window of {self.window} and a "
                f"set of rank {self.rank} needs a budget of at least {needed:.1f} "
                f"tokens; got {budget:.1f}"
            )
        return int(budget - weight)

    def _tilts(
        self, prompt: LayerPrompt, head: int, n: int
    ) -> tuple[Float[Tensor, "g m k"], Bool[Tensor, "m n"] | None]:
        """Return the tilts to calibrate on, and which tokens they must not see."""
        query = prompt.scale * prompt.query[head, :, -self.queries :].float()
        if prompt.rotate is not None:
            moved = [prompt.rotate(query, positions) for positions in self.ahead]
            return torch.cat(moved, 1), None
        position = torch.arange(n, device=query.device)
        return query, position > position[-query.shape[1] :, None]

    def _nothing(self, prompt: LayerPrompt) -> LinearSets:
        """Return an empty set, of the size that every set of this method has."""
        group, k, v = (
            prompt.query.shape[1],
            prompt.key.shape[-1],
            prompt.value.shape[-1],
        )
        return empty_set(group, k, v, min(self.rank, k), prompt.key.device)


def importance(sight: Sight, value: Float[Tensor, "n v"]) -> Float[Tensor, " n"]:
    r"""Return $\|v_j - \bar v\|$ times the mean of $w_j / \|\sum_i w_i v_i\|$.

    What leaving token j out moves the output by, relative to the output.
    """
    unit = sight.whole(value)  # not normalised: the mass cancels
    share = 1 / unit.norm(dim=-1).clamp_min(1e-30)
    weight = sight.weight @ share / len(share)
    return weight * (value - value.mean(0)).norm(dim=-1)
