"""What a method loses on queries that it did not see."""

import dataclasses
from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.prompt import Compressor, LayerPrompt
from largeprompt.compress.sets import merge


@final
@dataclasses.dataclass(frozen=True, eq=False)
class HeldOut:
    """The outputs of one text's heads at held-out queries, compressed and exact."""

    guess: Float[Tensor, "b g m v"]
    truth: Float[Tensor, "b g m v"]

    @property
    def relative(self) -> Float[Tensor, "b g m"]:
        """Return the relative error of each head's output."""
        size = self.truth.norm(dim=-1).clamp_min(1e-30)
        return (self.guess - self.truth).norm(dim=-1) / size

    def median(self) -> Float[Tensor, " b"]:
        """Return the median relative error over a KV head's queries."""
        return self.relative.flatten(1).median(1).values

    def damage(self) -> Float[Tensor, " b"]:
        r"""Return each KV head's root mean square error beside the layer's output.

        $$ \Big( \overline{\textstyle\sum_g \|\hat o_{hg} - o_{hg}\|^2} \,\Big/\,
           \overline{\textstyle\sum_{h'g} \|o_{h'g}\|^2} \Big)^{1/2}, $$

        means over the queries: comparable between layers, and unlike the median it
        sees the rare query that looks for one token.
        """
        error = (self.guess - self.truth).square().sum(-1).sum(1).mean(-1)
        size = self.truth.square().sum(-1).sum((0, 1)).mean()
        return (error / size.clamp_min(1e-30)).sqrt()


def held_out(
    method: Compressor, prompt: LayerPrompt, budget: Float[Tensor, " b"], held: int
) -> HeldOut:
    """Ask queries that the method did not see.

    The prompt is cut `held` tokens before its end and compressed there; its true last
    `held` queries then ask, with the tokens since the cut exact.

    Raises:
        ValueError: The prompt's queries are not more than `held`.
    """
    return held_out_each(method, prompt, [budget], held)[0]


def held_out_each(
    method: Compressor,
    prompt: LayerPrompt,
    budgets: Sequence[Float[Tensor, " b"]],
    held: int,
) -> list[HeldOut]:
    """Ask as `held_out` does, after each of several compressions.

    Raises:
        ValueError: The prompt's queries are not more than `held`.
    """
    if prompt.query.shape[2] <= held:
        raise ValueError(
            f"more than {held} queries are needed to hold {held} out; "
            f"got {prompt.query.shape[2]}"
        )
    before = dataclasses.replace(
        prompt,
        key=prompt.key[:, :-held],
        value=prompt.value[:, :-held],
        valid=prompt.valid[:, :-held],
        query=prompt.query[:, :, :-held],
    )
    compacts = method.compress_each(before, budgets)
    tilt = prompt.scale * prompt.query[:, :, -held:].float()
    tail = _causal(prompt, tilt, held)
    truth = _causal(prompt, tilt, prompt.key.shape[1]).output
    found = []
    for compact in compacts:
        past = compact.answer(tilt)
        masses = torch.stack([past.log_mass, tail.log_mass], -1)
        outputs = torch.stack([past.output, tail.output], -2)
        found.append(HeldOut(merge(Answer(masses, outputs)).output, truth))
    return found


def _causal(prompt: LayerPrompt, tilt: Float[Tensor, "b g m k"], last: int) -> Answer:
    """Answer from the last tokens, each of the last queries up to its own position."""
    key, value = (x[:, None, -last:].float() for x in (prompt.key, prompt.value))
    valid = prompt.valid[:, None, -last:, None]
    m = tilt.shape[2]
    position = torch.arange(m, device=tilt.device)
    logits = tilt @ key.mT
    logits[..., -m:].masked_fill_(position > position[:, None], -torch.inf)
    logits.masked_fill_(~valid.mT, -torch.inf)
    log_mass = logits.logsumexp(-1)
    weight = logits.sub_(log_mass[..., None]).exp_()
    return Answer(log_mass, weight @ value.masked_fill(~valid, 0))
