"""One layer's queries, keys and values -> its rows of the table of heads."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import final

from jaxtyping import Float, Float64
from torch import Tensor

from largeprompt.audit.curves import layer_curves, profiled
from largeprompt.audit.logits import Logits
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.rows import Row, head_rows
from largeprompt.audit.sinks import sinks
from largeprompt.audit.statistics import with_and_without
from largeprompt.audit.surface import law_surface

Compared = Callable[[Float64[Tensor, "h m v"], Prefixes, Sequence[int]], list[float]]
"""Recomputed outputs, at which positions, of which heads -> their relative errors."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LayerArrays:
    r"""What the softmax of one layer meets.

    Attributes:
        query: Queries, after rotations and norms.
        key: Keys; each key/value head serves `h / hkv` consecutive query heads.
        value: Values.
        scale: Factor of the inner products.
        softcap: $c$ where the logits are $c \tanh(\text{scale}\, q \cdot k / c)$.
        before: The keys before rotary embedding; None where there is none.
    """

    query: Float[Tensor, "h n k"]
    key: Float[Tensor, "hkv n k"]
    value: Float[Tensor, "hkv n v"]
    scale: float
    softcap: float | None = None
    before: Float[Tensor, "hkv n k"] | None = None


def layer_rows(
    arrays: LayerArrays,
    prefixes: Prefixes,
    *,
    layer: int,
    heads: Sequence[int],
    eps: float,
    text: str,
    compared: Compared | None,
    drawn: bool = True,
) -> list[Row]:
    """Return the rows of some heads of a layer at one length, each with its curves.

    Whole groups of heads are computed, so that a head's numbers do not depend on which
    others were asked for.

    Args:
        arrays: The layer's queries, keys and values.
        prefixes: The query positions, and what each sees.
        layer: The layer's number.
        heads: The query heads wanted, in order.
        eps: The relative error that `tokens_needed` and the verdict ask for.
        text: The name of the text.
        compared: Checks the recomputed outputs against the model's own; None where
            there is no model.
        drawn: Whether curves are wanted.
    """
    kv_heads = arrays.key.shape[0]
    group = arrays.query.shape[0] // kv_heads
    groups = sorted({head // group for head in heads})
    found = [kv * group + member for kv in groups for member in range(group)]
    whole = len(groups) == kv_heads
    query, key, value, before = arrays.query, arrays.key, arrays.value, arrays.before
    if not whole:
        query, key, value = query[found], key[groups], value[groups]
        before = None if before is None else before[groups]
    law = Logits(arrays.scale, arrays.softcap)
    some = prefixes.at(profiled(len(prefixes.positions)))
    sunk = [
        sinks(query[kv * group : (kv + 1) * group], key[kv], some, law)
        for kv in range(len(groups))
    ]
    statistics, rest = with_and_without(
        query, key, value, prefixes, [each.tokens for each in sunk], law
    )
    errors = None
    if compared is not None:
        errors = compared(statistics.output, prefixes, found)
    rows = head_rows(
        statistics,
        rest,
        layer_curves(
            query, key, value, prefixes, statistics, law, sunk, before, drawn=drawn
        ),
        prefixes,
        law_surface(),
        layer=layer,
        heads=found,
        group=group,
        eps=eps,
        text=text,
        parity_errors=errors,
    )
    return [row for row in rows if row["head"] in heads]
