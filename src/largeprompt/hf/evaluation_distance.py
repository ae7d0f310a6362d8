"""How far next-token distributions after a compressed prompt are from exact ones."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

ROWS = 64  # positions at a time: a vocabulary is wide


@final
@dataclasses.dataclass(frozen=True)
class Distance:
    """Means over the positions of a continuation.

    Attributes:
        kl: Kullback-Leibler divergence KL(exact, compressed), in nats.
        top1: The share of positions where both hold the same token most likely.
        nll: Negative log-likelihood of the text's own next token, in nats.
        accuracy: The share of positions whose most likely token is the text's own.
    """

    kl: float
    top1: float
    nll: float
    accuracy: float


def distance(
    exact: Float[Tensor, "m vocabulary"],
    logits: Float[Tensor, "m vocabulary"],
    tokens: Int64[Tensor, " m"],
) -> Distance:
    """Compare next-token distributions, in float32.

    Args:
        exact: Log-probabilities after each token, of the exact model.
        logits: Logits after each token, of the compressed one.
        tokens: The tokens; `nll` and `accuracy` are about all but the first.
    """
    kl, top1, picked, right = [], [], [], []
    following = tokens.roll(-1)
    for p, z, target in zip(
        exact.split(ROWS), logits.split(ROWS), following.split(ROWS), strict=True
    ):
        q = z.float().log_softmax(-1).to(p.device)
        kl.append((p.exp() * (p - q)).sum(-1))
        best = q.argmax(-1)
        top1.append(best == p.argmax(-1))
        picked.append(q.gather(-1, target[:, None].to(q.device))[:, 0])
        right.append(best == target.to(q.device))
    return Distance(
        kl=_mean(kl),
        top1=_mean(top1),
        nll=-_mean([torch.cat(picked)[:-1]]),
        accuracy=_mean([torch.cat(right)[:-1]]),
    )


def _mean(parts: list[Tensor]) -> float:
    return float(torch.cat(parts).double().mean())
