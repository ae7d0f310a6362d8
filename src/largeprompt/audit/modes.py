r"""Which tokens excite the leading modes of a head's limit operator.

With $\text{scale}\,\mathrm{Cov}(v, k) = \sum_i \sigma_i\, a_i b_i^\top$ a query is read
along $b_i$ and answered along $a_i$; the tokens that stand out along the two say what a
mode asks for, and what it tells.
"""

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from largeprompt.audit.profiles import Curve, curve_row

MODES = 3
TOKENS = 5  # a mode and side


def leading_modes(
    operator: Float64[Tensor, "v k"],
    key: Float[Tensor, "n k"],
    value: Float[Tensor, "n v"],
    first: int,
) -> list[Curve]:
    """Return the tokens that stand out most along the leading singular directions.

    Along each direction the tokens are measured from their mean, in standard
    deviations; those farthest on either side come first. The sign of a mode is that of
    its farthest key.

    Args:
        operator: The limit operator of the tokens.
        key: The keys of the tokens.
        value: Their values.
        first: The place of the first of them in the text.

    Returns:
        Rows of `audit.profiles` without their place: `key_mode_1`, `value_mode_1`, ...
    """
    left, size, right = torch.linalg.svd(operator, full_matrices=False)
    count = min(MODES, int((size > 0).sum()))
    keys = _standing(key, right[:count].mT)
    values = _standing(value, left[:, :count])
    found = []
    for mode in range(count):
        along = keys[:, mode], values[:, mode]
        sign = 1.0 if along[0][along[0].abs().argmax()] > 0 else -1.0
        for side, distances in zip(("key", "value"), along, strict=True):
            top = distances.abs().topk(min(TOKENS, len(distances))).indices
            found.append(
                curve_row(
                    f"{side}_mode_{mode + 1}",
                    (top + first).double().cpu().numpy(),
                    (sign * distances[top]).cpu().numpy(),
                    None,
                )
            )
    return found


def _standing(
    tokens: Float[Tensor, "n d"], directions: Float64[Tensor, "d r"]
) -> Float64[Tensor, "n r"]:
    """Return the tokens along directions, centred, in standard deviations."""
    along = tokens.to(directions.dtype) @ directions
    along = along - along.mean(0)
    deviation = along.square().mean(0).sqrt()
    return along / torch.where(deviation > 0, deviation, 1)
