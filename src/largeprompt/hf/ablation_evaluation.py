"""What replacing heads does to a model's predictions of one text."""

import dataclasses
import math
from collections.abc import Collection, Iterator
from typing import Self, final

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor
from torch.nn import functional as F
from transformers import PreTrainedModel

from largeprompt.errors import UnsupportedModelError
from largeprompt.hf.ablation_attention import HeadName, ablated
from largeprompt.hf.ablation_limit import Replacement

BLOCK = 128  # positions whose logits over the vocabulary are held at once
GROUPS = 16  # contiguous groups of positions that the standard error is taken from
PROBE = 4  # positions at which the model's own logits are compared


@final
@dataclasses.dataclass(frozen=True)
class Effect:
    r"""The change of next-token predictions, averages over the positions compared.

    Attributes:
        loss: Cross-entropy of the next token with the heads replaced, in nats.
        loss_change: The same minus that of the intact model.
        loss_change_error: Standard error of `loss_change`, from 16 contiguous groups of
            positions taken as independent.
        kl: $\mathrm{KL}(\text{intact} \,\|\, \text{replaced})$, in nats.
        top1_agreement: The share of positions with the same most likely token.
    """

    loss: float
    loss_change: float
    loss_change_error: float
    kl: float
    top1_agreement: float


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Intact:
    """The unchanged model's reading of a text: what every ablation is compared with.

    Attributes:
        model: The model.
        tokens: The text.
        first: The first position compared; the last token has nothing to predict.
        states: The final hidden states at the positions compared.
    """

    model: PreTrainedModel
    tokens: Int64[Tensor, " n"]
    first: int
    states: Float[Tensor, "m d"]

    @classmethod
    def read(
        cls, model: PreTrainedModel, tokens: Int64[Tensor, " n"], first: int
    ) -> Self:
        """Run the intact model once.

        Raises:
            UnsupportedModelError: The model's logits are not a linear map of its final
                hidden states.
        """
        states = _final_states(model, tokens)
        with torch.inference_mode():
            whole = model(
                input_ids=tokens[None, :PROBE].to(model.device),
                use_cache=False,
                output_hidden_states=True,
            )
            ours = _logits(model, whole.hidden_states[-1][0])
        if not torch.equal(ours, whole.logits[0]):
            raise UnsupportedModelError(
                f"{type(model).__name__} does more to its final hidden states than "
                "its output embeddings"
            )
        return cls(model, tokens, first, states[first:-1])

    def effect(self, heads: Collection[HeadName], replacement: Replacement) -> Effect:
        """Replace some heads and compare the predictions with the intact model's.

        Without a head nothing is run: the model is intact.
        """
        states = self.states
        if heads:
            with ablated(self.model, heads, replacement):
                states = _final_states(self.model, self.tokens)[self.first : -1]
        targets = self.tokens[self.first + 1 :].to(states.device)
        loss, change, divergence, same = (
            torch.cat(parts).double()
            for parts in zip(*self._compared(states, targets), strict=True)
        )
        groups = [group.mean() for group in change.tensor_split(GROUPS) if len(group)]
        return Effect(
            loss=float(loss.mean()),
            loss_change=float(change.mean()),
            loss_change_error=_standard_error(torch.stack(groups)),
            kl=float(divergence.mean()),
            top1_agreement=float(same.mean()),
        )

    @torch.inference_mode()
    def _compared(
        self, states: Float[Tensor, "m d"], targets: Int64[Tensor, " m"]
    ) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Yield losses, their changes, divergences and agreements, in blocks."""
        for start in range(0, len(targets), BLOCK):
            rows = slice(start, start + BLOCK)
            before = _log_probabilities(self.model, self.states[rows])
            after = _log_probabilities(self.model, states[rows])
            target = targets[rows, None]
            loss = -after.gather(1, target)[:, 0]
            divergence = F.kl_div(after, before, log_target=True, reduction="none")
            yield (
                loss,
                loss + before.gather(1, target)[:, 0],
                divergence.sum(-1),
                (before.argmax(-1) == after.argmax(-1)).float(),
            )


@torch.inference_mode()
def _final_states(
    model: PreTrainedModel, tokens: Int64[Tensor, " n"]
) -> Float[Tensor, "n d"]:
    return model.base_model(
        input_ids=tokens[None].to(model.device), use_cache=False
    ).last_hidden_state[0]


def _logits(
    model: PreTrainedModel, states: Float[Tensor, "m d"]
) -> Float[Tensor, "m vocabulary"]:
    head = model.get_output_embeddings()
    if head is None:
        raise UnsupportedModelError(f"{type(model).__name__} predicts no tokens")
    return head(states)


def _log_probabilities(
    model: PreTrainedModel, states: Float[Tensor, "m d"]
) -> Float[Tensor, "m vocabulary"]:
    return _logits(model, states).float().log_softmax(-1)


def _standard_error(groups: Float64[Tensor, " g"]) -> float:
    return float(groups.std()) / math.sqrt(len(groups)) if len(groups) > 1 else math.nan
