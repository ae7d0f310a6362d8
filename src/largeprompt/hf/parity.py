"""Compare attention as the audit understands it with what the model computed."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Float64
from torch import Tensor
from torch.nn import functional as F

from largeprompt.audit.prefixes import Prefixes
from largeprompt.errors import ParityError
from largeprompt.hf.attention import LayerRecord
from largeprompt.hf.streamed import capped

FLOAT32_ERROR = 1e-5  # relative; float32 sums of a few thousand tokens stay below
HONEST = 2.0  # times the error that SDPA itself makes in a lower precision


def parity_errors(
    recomputed: Float64[Tensor, "h m v"],
    record: LayerRecord,
    prefixes: Prefixes,
    heads: Sequence[int] | None = None,
) -> list[float]:
    """Return each head's relative error; refuse where it is not a rounding error.

    Args:
        recomputed: The heads' outputs in float64 from the record's queries, keys and
            values, under the documented mask.
        record: What the model computed.
        prefixes: The query positions, and the tokens they see as documented.
        heads: Which heads were recomputed, whole groups of them; all when None.

    Raises:
        ParityError: A head is off by more than 1e-5 (float32 or wider) or by more than
            twice the error of SDPA in the model's own precision.
    """
    names = range(record.query.shape[0]) if heads is None else heads
    at = prefixes.positions.to(record.output.device)
    theirs = record.output[:, at][list(names)].cpu()
    errors = _relative(theirs, recomputed)
    if torch.finfo(record.output.dtype).bits >= 32:
        allowed = torch.full_like(errors, FLOAT32_ERROR)
    else:
        alternative = _relative(_rounded(record, prefixes, list(names)), recomputed)
        rounding = torch.finfo(record.output.dtype).eps
        allowed = (HONEST * alternative).clamp_min(rounding)
    for head in (~(errors <= allowed)).nonzero().flatten().tolist():
        raise ParityError(
            f"layer {record.layer}, head {names[head]}: the output recomputed from q, "
            "k, v and the documented mask is off by "
            f"{errors[head]:.2g} relative to the model's own, more than "
            f"{allowed[head]:.2g}; the model's attention is not what its configuration "
            "says"
        )
    return errors.tolist()


def _relative(
    ours: Float[Tensor, "h m v"], exact: Float64[Tensor, "h m v"]
) -> Float64[Tensor, " h"]:
    difference = (ours.double() - exact).flatten(1).norm(dim=1)
    size = exact.flatten(1).norm(dim=1)
    return torch.where(difference > 0, difference / size, 0.0)


def _rounded(
    record: LayerRecord, prefixes: Prefixes, heads: list[int]
) -> Float[Tensor, "h m v"]:
    """Return attention computed once more in the model's own precision."""
    at = prefixes.to(record.query.device)
    group = record.query.shape[0] // record.key.shape[0]
    owners = [head // group for head in heads]
    visible = at.visible(torch.arange(record.key.shape[1], device=record.key.device))
    arrays = (
        record.query[:, at.positions][heads],
        record.key[owners],
        record.value[owners],
    )
    if record.softcap is None:
        answer = F.scaled_dot_product_attention(
            *arrays, attn_mask=visible, scale=record.scale
        )
    else:
        q, k, v = (array[None] for array in arrays)
        answer = capped(q, k, v, visible[None, None], record.softcap, record.scale)
        answer = answer[0].transpose(0, 1)
    return answer.cpu()
