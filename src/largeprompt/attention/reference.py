"""Softmax attention by its definition, in float64: the oracle of everything fast.

Never optimised. Every kernel, cache and hook is tested against these functions.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def attend(
    query: Float[Tensor, "*#batch m k"],
    keys: Float[Tensor, "*#batch n k"],
    values: Float[Tensor, "*#batch n v"],
    *,
    scale: float,
    mask: Bool[Tensor, "*#batch m n"] | None = None,
) -> Float[Tensor, "*batch m v"]:
    r"""Return $\sum_i e^{\lambda q \cdot k_i} v_i / \sum_i e^{\lambda q \cdot k_i}$.

    Attention over joint atoms $(k_i, v_i)$. Inputs of any precision are raised to
    float64, and so is the answer.

    Args:
        query: The queries $q$.
        keys: The keys $k_i$.
        values: The values $v_i$.
        scale: The factor $\lambda$ of the logits.
        mask: True where a query sees an atom; all of them when left out.

    Raises:
        ValueError: If a query sees no atom.
    """
    logits = scale * query.double() @ keys.double().mT  # *batch m n
    if mask is not None:
        if not mask.any(-1).all():
            raise ValueError("every query must see an atom; got a row of mask without")
        logits = logits.masked_fill(~mask, -torch.inf)
    highest = logits.amax(-1, keepdim=True)
    masses = torch.exp(logits - highest)
    return masses @ values.double() / masses.sum(-1, keepdim=True)


def attend_tokens(
    query: Float[Tensor, "*#batch m e"],
    tokens: Float[Tensor, "*#batch n d"],
    key_matrix: Float[Tensor, "k d"],
    query_matrix: Float[Tensor, "k e"],
    value_matrix: Float[Tensor, "v d"],
    *,
    scale: float,
    mask: Bool[Tensor, "*#batch m n"] | None = None,
) -> Float[Tensor, "*batch m v"]:
    r"""Return attention with keys $K x_i$, values $V x_i$ and queries $Q z$.

    Args:
        query: The tokens $z$ that ask.
        tokens: The tokens $x_i$ that answer.
        key_matrix: The matrix $K$.
        query_matrix: The matrix $Q$.
        value_matrix: The matrix $V$.
        scale: The factor $\lambda$ of the logits.
        mask: True where a query sees a token; all of them when left out.

    Raises:
        ValueError: If a query sees no token.
    """
    return attend(
        query.double() @ query_matrix.double().mT,
        tokens.double() @ key_matrix.double().mT,
        tokens.double() @ value_matrix.double().mT,
        scale=scale,
        mask=mask,
    )
