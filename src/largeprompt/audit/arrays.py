"""Audit plain arrays: the queries, keys and values of one layer, without a model."""

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.checks import check_arrays, check_eps, check_lengths
from largeprompt.audit.layer import LayerArrays
from largeprompt.audit.layers import audit_layers
from largeprompt.audit.result import AuditResult
from largeprompt.audit.selection import Question


def audit_arrays(
    q: Float[Tensor, "h n k"],
    k: Float[Tensor, "hkv n k"],
    v: Float[Tensor, "hkv n v"],
    *,
    lengths: Sequence[int],
    queries: int = 32,
    eps: float = 0.1,
    scale: float | None = None,
    window: int | None = None,
    causal: bool = True,
    softcap: float | None = None,
    heads: Sequence[int] | None = None,
    seed: int | None = None,
) -> AuditResult:
    r"""Audit the heads of one layer, softmax attention over `scale * q.k`.

    Args:
        q: Queries as the softmax meets them: after rotations and norms.
        k: Keys; each key/value head serves `h / hkv` consecutive query heads.
        v: Values.
        lengths: Prompt lengths; each is measured on the first tokens of the arrays. If
            attention goes both ways the first `n` tokens are taken for a whole text.
        queries: Query positions at each length: the last ones, at most half of it;
            spread evenly if attention goes both ways.
        eps: Relative error that verdicts and `tokens_needed` ask for.
        scale: Factor of the inner products; $1/\sqrt{d_k}$ when None.
        window: Tokens in a sliding window, the query's own included.
        causal: Whether a token sees earlier tokens only.
        softcap: $c$ where the logits are $c \tanh(\text{scale}\, q \cdot k / c)$.
        heads: The query heads to audit; every one when None.
        seed: Where query positions are drawn from; None for those above.

    Raises:
        ValueError: Shapes do not fit, numbers are not finite, or a length is out of
            reach of the arrays.
    """
    check_arrays(q, k, v)
    check_eps(eps)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    q, k, v = (array.detach() for array in (q, k, v))
    ordered = check_lengths(lengths, q.shape[1])
    return audit_layers(
        [(0, LayerArrays(q, k, v, scale, softcap))],
        Question(ordered, queries, eps, heads=heads, seed=seed),
        window=window,
        causal=causal,
        name="arrays",
    )
