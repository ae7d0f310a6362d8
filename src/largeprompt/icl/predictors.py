"""Predictions of heads from drawn prompts, by their definition."""

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.icl.conventions import Conventions
from largeprompt.icl.tasks import Prompts


def softmax_prediction(
    prompts: Prompts,
    bilinear: Float[Tensor, "*heads d+1 d+1"],
    value: Float[Tensor, "*heads d+1"],
    conventions: Conventions | None = None,
) -> Float[Tensor, " b"]:
    r"""Return $\sum_h v_h^\top \sum_i w_i z_i$, softmax weights $w_i$ for each head.

    Args:
        prompts: The prompts.
        bilinear: $U$ of one head or several, with every scale folded in.
        value: $v$ of each head.
        conventions: Whether the query is one of the tokens.
    """
    tokens = _tokens(prompts, conventions)
    width = value.shape[-1]
    total = torch.zeros_like(prompts.y_query)
    forms, rows = bilinear.reshape(-1, width, width), value.reshape(-1, width)
    for form, row in zip(forms, rows, strict=True):
        logits = torch.einsum("bnd,bd->bn", tokens, prompts.query @ form.mT)
        total = total + (torch.softmax(logits, -1) * (tokens @ row)).sum(-1)
    return total


def linear_prediction(
    prompts: Prompts,
    bilinear: Float[Tensor, "d+1 d+1"],
    value: Float[Tensor, " d+1"],
    conventions: Conventions | None = None,
) -> Float[Tensor, " b"]:
    r"""Return $\frac1N \sum_i (v \cdot z_i)(z_i^\top U z_q)$."""
    rules = Conventions() if conventions is None else conventions
    tokens = _tokens(prompts, conventions)
    logits = torch.einsum("bnd,bd->bn", tokens, prompts.query @ bilinear.mT)
    divisor = rules.normaliser.divisor(prompts.y.shape[-1])
    return (logits * (tokens @ value)).sum(-1) / divisor


def _tokens(prompts: Prompts, conventions: Conventions | None) -> Tensor:
    """Return what the query attends to."""
    if conventions is None or not conventions.query_in_prompt:
        return prompts.tokens
    return torch.cat([prompts.tokens, prompts.query.unsqueeze(1)], dim=1)
