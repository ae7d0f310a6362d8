"""Compare attention as the audit understands it with what the model computed."""

import torch
from jaxtyping import Float, Float64
from torch import Tensor
from torch.nn import functional as F

from largeprompt.audit.prefixes import Prefixes
from largeprompt.errors import ParityError
from largeprompt.hf.attention import LayerRecord

FLOAT32_ERROR = 1e-5  # relative; float32 sums of a few thousand tokens stay below
HONEST = 2.0  # times the error that SDPA itself makes in a lower precision


def parity_errors(
    recomputed: Float64[Tensor, "h m v"], record: LayerRecord, prefixes: Prefixes
) -> list[float]:
    """Return each head's relative error; refuse where it is not a rounding error.

    Args:
        recomputed: The heads' outputs in float64 from the record's queries, keys and
            values, under the documented mask.
        record: What the model computed.
        prefixes: The query positions, and the tokens they see as documented.

    Raises:
        ParityError: A head is off by more than 1e-5 (float32 or wider) or by more than
            twice the error of SDPA in the model's own precision.
    """
    theirs = record.output[:, prefixes.positions]
    errors = _relative(theirs, recomputed)
    if torch.finfo(record.output.dtype).bits >= 32:
        allowed = torch.full_like(errors, FLOAT32_ERROR)
    else:
        alternative = _relative(_sdpa(record, prefixes), recomputed)
        rounding = torch.finfo(record.output.dtype).eps
        allowed = (HONEST * alternative).clamp_min(rounding)
    for head in (~(errors <= allowed)).nonzero().flatten().tolist():
        raise ParityError(
            f"layer {record.layer}, head {head}: the output recomputed from q, k, v "
            f"and the documented mask is off by {errors[head]:.2g} relative to the "
            f"model's own, more than {allowed[head]:.2g}; the model's attention is not "
            "what its configuration says"
        )
    return errors.tolist()


def _relative(
    ours: Float[Tensor, "h m v"], exact: Float64[Tensor, "h m v"]
) -> Float64[Tensor, " h"]:
    difference = (ours.double() - exact).flatten(1).norm(dim=1)
    size = exact.flatten(1).norm(dim=1)
    return torch.where(difference > 0, difference / size, 0.0)


def _sdpa(record: LayerRecord, prefixes: Prefixes) -> Float[Tensor, "h m v"]:
    groups = record.query.shape[0] // record.key.shape[0]
    visible = prefixes.visible(torch.arange(record.key.shape[1]))
    return F.scaled_dot_product_attention(
        record.query[:, prefixes.positions],
        record.key.repeat_interleave(groups, 0),
        record.value.repeat_interleave(groups, 0),
        attn_mask=visible,
        scale=record.scale,
    )
