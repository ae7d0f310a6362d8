"""What the heads that read one key/value head have in common."""

import dataclasses
import math
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from largeprompt.audit.key_law import key_law
from largeprompt.audit.logits import Logits
from largeprompt.audit.modes import leading_modes
from largeprompt.audit.operator import LARGEST, covariance, effective_rank
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.profiles import Curve, curve_row
from largeprompt.audit.readings import Reading, read
from largeprompt.audit.sinks import Sinks


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """What the heads that read one key/value head have in common.

    Attributes:
        readings: The queries read in full.
        spectrum: The singular values of the limit operator.
        columns: The columns that do not differ between the heads.
        curves: The curves that do not, where curves are drawn.
    """

    readings: list[Reading]
    spectrum: Float64[Tensor, " r"]
    columns: dict[str, float]
    curves: list[Curve]


def kv_group(
    query: Float[Tensor, "g n k"],
    key: Float[Tensor, "n k"],
    value: Float[Tensor, "n v"],
    before: Float[Tensor, "n k"] | None,
    prefixes: Prefixes,
    law: Logits,
    sinks: Sinks,
    *,
    drawn: bool,
) -> Group:
    """Return what the heads of one key/value head have in common.

    Args:
        query: The queries of the heads.
        key: The keys.
        value: The values.
        before: The keys before rotary embedding, where there is one.
        prefixes: The query positions to read, and what each sees.
        law: How a query and a key become a logit.
        sinks: The sinks of the heads.
        drawn: Whether curves are wanted.
    """
    first, end = int(prefixes.first[-1]), int(prefixes.final[-1]) + 1
    left_out = sinks.seen(first, end) - first
    others = torch.ones(end - first, dtype=torch.bool, device=key.device)
    others[left_out] = False
    keys, values = key[first:end], value[first:end]
    operator = law.scale * covariance(values, keys)
    spectrum = torch.linalg.svdvals(operator).cpu()
    own = key_law(keys[others])
    bare = None if before is None else key_law(before[first:end][others])
    columns = {
        "effective_rank": effective_rank(spectrum),
        "sinks": float(len(left_out)),
    }
    for suffix, found in (("", own), ("_before_rotary", bare)):
        columns |= {
            f"key_{name}{suffix}": math.nan if found is None else getattr(found, name)
            for name in ("mean_share", "rank", "kurtosis")
        }
    curves = []
    if drawn:
        ranks = np.arange(1.0, min(len(spectrum), LARGEST) + 1)
        axes = np.arange(1.0, min(len(own.spectrum), LARGEST) + 1)
        curves = [
            curve_row("spectrum", ranks, spectrum[: len(ranks)].numpy(), None),
            curve_row(
                "keys",
                axes,
                own.spectrum[: len(axes)].numpy(),
                None if bare is None else bare.spectrum[: len(axes)].numpy(),
            ),
            *leading_modes(operator, keys, values, first),
        ]
    readings = read(query, key, value, prefixes, law, sinks.tokens)
    return Group(readings, spectrum, columns, curves)
