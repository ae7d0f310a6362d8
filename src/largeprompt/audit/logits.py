r"""The logits of a block of queries, less a reference that keeps their sums small."""

import dataclasses
from typing import final

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

Tokens = slice | Int64[Tensor, " t"]


@final
@dataclasses.dataclass(frozen=True)
class Logits:
    r"""How a query and a key become a logit.

    Attributes:
        scale: Factor of the inner product.
        softcap: $c$ where the logit is $c \tanh(\text{scale}\, q \cdot k / c)$ (Gemma
            Team (2024) [gemma2:24], section 2); None where it is the inner product.
    """

    scale: float
    softcap: float | None


@final
@dataclasses.dataclass(frozen=True, eq=False)
class CentredLogits:
    r"""Logits less $r = \ell(q, \bar k)$, the logit of the mean key.

    Exact sums of powers need no second pass when what is summed is of the size of its
    spread, and the mean key is known before any logit is.
    """

    query: Float64[Tensor, "h m k"]
    key: Float64[Tensor, "h n k"]
    reference: Float64[Tensor, "h m"]
    law: Logits

    def __call__(self, tokens: Tokens) -> Float64[Tensor, "h m t"]:
        """Return the logits of some of the tokens, less the reference."""
        inner = self.query @ self.key[:, tokens].mT
        if self.law.softcap is None:
            return inner
        return _capped(inner, self.law.softcap) - self.reference[..., None]


def centred(
    query: Float64[Tensor, "h m k"], key: Float64[Tensor, "h n k"], law: Logits
) -> CentredLogits:
    """Return the logits of a block, computed when they are asked for."""
    query = law.scale * query
    mean = key.mean(1, keepdim=True)
    reference = (query @ mean.mT)[..., 0]
    if law.softcap is None:
        return CentredLogits(query, key - mean, reference, law)
    return CentredLogits(query, key, _capped(reference, law.softcap), law)


def _capped(
    logits: Float64[Tensor, "*batch n"], softcap: float
) -> Float64[Tensor, "*batch n"]:
    return softcap * torch.tanh(logits / softcap)
