"""Opening a set: the tokens that may weigh most are read, the others are drawn from."""

import torch
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.limits import Answer
from largeprompt.compress.certificate_envelope import LogitEnvelope
from largeprompt.compress.certificate_tokens import HeldTokens
from largeprompt.compress.sets import merge


def opened(
    tilt: Float[Tensor, "*b m k"],
    tokens: HeldTokens,
    envelope: LogitEnvelope,
    kept: Answer,
    count: int,
) -> tuple[LogitEnvelope, Answer]:
    """Return the envelope of what stays closed, and the answer of all that is exact.

    For each query the `count` tokens of the largest bounds join the exact ones. A
    certificate's radius scales with the mass of the others.

    Args:
        tilt: Queries times the attention scale.
        tokens: The tokens of the summarised set.
        envelope: Bounds on their logits; minus infinity for tokens opened before.
        kept: What the tokens outside the set answer, exactly.
        count: How many tokens to open for each query, fewer than the set holds.

    Raises:
        ValueError: `count` leaves no token closed, or is negative.
    """
    held = tokens.key.shape[-2]
    if not 0 <= count < held:
        raise ValueError(f"count must lie in [0, {held}); got {count}")
    rows = envelope.upper.topk(count, dim=-1).indices
    logits, values = tokens.drawn(tilt, rows)
    inside = (logits.softmax(-1)[..., None, :] @ values).squeeze(-2)
    exact = Answer(
        torch.stack([kept.log_mass, logits.logsumexp(-1)], -1),
        torch.stack([kept.output, inside + tokens.value_mean[..., None, :]], -2),
    )
    upper = envelope.upper.scatter(-1, rows, -torch.inf)
    return LogitEnvelope(upper, envelope.width), merge(exact)
