"""Which heads of a model are replaced: by name, by an audit, or by chance."""

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any, final

import torch

from largeprompt.hf.ablation_attention import HeadName

LINEAR, KEPT, ALL = "linear-ones", "kept-ones", "all"
RANDOM = re.compile(r"random:(\d+)")
NAMES = re.compile(r"\d+\.\d+(,\d+\.\d+)*")


@final
@dataclasses.dataclass(frozen=True)
class Selection:
    """A set of heads to replace together.

    Attributes:
        name: What it was asked for as.
        order: `audit` or `random` on a curve, where a set holds the one before it;
            `chosen` otherwise.
        heads: The heads.
    """

    name: str
    order: str
    heads: tuple[HeadName, ...]


@final
@dataclasses.dataclass(frozen=True)
class AuditedHead:
    """What an audit says of one head at the length of the ablation.

    Attributes:
        head: Its layer and its number.
        error: The error of the linear limit, first and recent tokens exact.
        linear: Whether no assumption of the linear limit fails within eps.
        kept: Whether `error` is within eps.
    """

    head: HeadName
    error: float
    linear: bool
    kept: bool


def audited_heads(rows: Sequence[dict[str, Any]], eps: float) -> list[AuditedHead]:
    """Return the heads of an audit's table at one length, the most linear first."""
    heads = [
        AuditedHead(
            head=(row["layer"], row["head"]),
            error=row["linear_error_kept"],
            linear=not row["failed_assumption"],
            kept=row["linear_error_kept"] <= eps,
        )
        for row in rows
    ]
    return sorted(heads, key=lambda head: (head.error, head.head))


def unaudited_heads(layers: int, heads: int) -> list[AuditedHead]:
    """Return the heads of a model of which nothing is known but that they are there."""
    names = [(layer, head) for layer in range(layers) for head in range(heads)]
    return [AuditedHead(name, math.nan, linear=True, kept=True) for name in names]


def select(wanted: str, heads: Sequence[AuditedHead], seed: int) -> Selection:
    """Return the heads that an option means.

    Args:
        wanted: `linear-ones` (the audit's verdict is linear), `kept-ones` (linear
            beside exact first and recent tokens), `all`, `random:K`, or heads as
            `LAYER.HEAD` between commas.
        heads: All heads of the model; the set may be empty where an audit decides.
        seed: Where random ones are drawn from.

    Raises:
        ValueError: It is none of these, or names a head that the model lacks.
    """
    if wanted in (LINEAR, KEPT):
        chosen = [h.head for h in heads if (h.linear if wanted == LINEAR else h.kept)]
    elif wanted == ALL:
        chosen = [h.head for h in heads]
    elif match := RANDOM.fullmatch(wanted):
        count = int(match[1])
        if not 1 <= count <= len(heads):
            raise ValueError(
                f"random:K must ask for 1 to {len(heads)} heads; got {wanted!r}"
            )
        chosen = shuffled(heads, seed)[:count]
    elif NAMES.fullmatch(wanted):
        chosen = _named(wanted, {h.head for h in heads})
    else:
        raise ValueError(
            f"heads must be {LINEAR}, {KEPT}, {ALL}, random:K or LAYER.HEAD between "
            f"commas; got {wanted!r}"
        )
    return Selection(wanted, "chosen", tuple(sorted(chosen)))


def curve(heads: Sequence[AuditedHead], seed: int) -> list[Selection]:
    """Return growing sets of 0, 1, 2, 4, ... and all heads, in two orders.

    By the audit's error, the most linear first; and by chance, as the control.
    """
    sizes = curve_sizes(len(heads))
    orders = {"audit": [h.head for h in heads], "random": shuffled(heads, seed)}
    return [
        Selection(f"first {size} in {name} order", name, tuple(sorted(order[:size])))
        for name, order in orders.items()
        for size in sizes
    ]


def curve_sizes(total: int) -> list[int]:
    """Return 0, the powers of two below `total`, and `total`."""
    return [0, *(2**k for k in range(total.bit_length()) if 2**k < total), total]


def shuffled(heads: Sequence[AuditedHead], seed: int) -> list[HeadName]:
    """Return all heads in an order drawn from the seed."""
    generator = torch.Generator().manual_seed(seed)
    ordered = sorted(h.head for h in heads)
    return [ordered[i] for i in torch.randperm(len(ordered), generator=generator)]


def _named(wanted: str, known: set[HeadName]) -> list[HeadName]:
    chosen = set()
    for name in wanted.split(","):
        layer, _, number = name.partition(".")
        head = int(layer), int(number)
        if head not in known:
            last = max(known)
            raise ValueError(
                f"the model has heads from 0.0 to {last[0]}.{last[1]}; got {name}"
            )
        chosen.add(head)
    return sorted(chosen)
