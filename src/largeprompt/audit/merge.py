"""Audits of parts of a model or of several texts -> one audit."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from largeprompt.audit.columns import SCHEMA
from largeprompt.audit.manifest import all_texts
from largeprompt.audit.profiles import PROFILE_SCHEMA
from largeprompt.audit.result import AuditResult

PLACES = ("text", "layer", "n", "head")
SHARED = ("lengths", "queries", "eps", "seed")


def merge_audits(parts: Sequence[AuditResult]) -> AuditResult:
    """Return the audit whose rows are those of the parts.

    Every statistic of a head is made from sums over its tokens, and no row depends on
    another, so parts that ran on different machines merge to what one machine gives.
    Texts stay in the order of the parts, times add up, and the memory is the largest.

    Args:
        parts: Audits of one model with the same lengths, queries, eps and seed, of
            other texts, layers or heads.

    Raises:
        ValueError: The parts are of different models or arguments, or overlap.
    """
    if not parts:
        raise ValueError("an audit needs at least one part; got none")
    first = parts[0].manifest
    for name, values in (
        ("model", [part.manifest["model"] for part in parts]),
        ("arguments", [_shared(part.manifest) for part in parts]),
    ):
        if any(value != values[0] for value in values):
            raise ValueError(f"parts must have the same {name}; got {values}")
    texts = {text["name"]: text for part in parts for text in part.manifest["texts"]}
    order = {name: place for place, name in enumerate(texts)}
    rows = [row for part in parts for row in part.heads.to_pylist()]
    rows.sort(key=lambda row: (order[row["text"]], *(row[p] for p in PLACES[1:])))
    places = [tuple(row[place] for place in PLACES) for row in rows]
    if len(set(places)) < len(places):
        raise ValueError("parts must not overlap; got a head twice")
    manifest = {
        **first,
        "text": all_texts(list(texts.values())),
        "texts": list(texts.values()),
        "arguments": {
            **first["arguments"],
            **{name: _union(parts, name) for name in ("layers", "heads")},
        },
        "seconds": sum(part.manifest["seconds"] for part in parts),
        "peak_rss_bytes": max(part.manifest["peak_rss_bytes"] for part in parts),
    }
    return AuditResult(
        pa.Table.from_pylist(rows, SCHEMA), manifest, _profiles(parts, order)
    )


def _profiles(parts: Sequence[AuditResult], order: dict[str, int]) -> pa.Table | None:
    """Return the curves of all parts; None where a part has none."""
    found = [part.profiles for part in parts if part.profiles is not None]
    if len(found) < len(parts):
        return None
    rows = [row for table in found for row in table.to_pylist()]
    rows.sort(key=lambda row: (order[row["text"]], *(row[p] for p in PLACES[1:])))
    return pa.Table.from_pylist(rows, PROFILE_SCHEMA)


def _shared(manifest: dict[str, Any]) -> dict[str, Any]:
    return {name: manifest["arguments"][name] for name in SHARED}


def _union(parts: Sequence[AuditResult], name: str) -> list[int] | None:
    """Return the layers or heads of all parts; None once they are all there are."""
    asked = [part.manifest["arguments"][name] for part in parts]
    if any(numbers is None for numbers in asked):
        return None
    numbers = sorted({number for some in asked for number in some})
    return None if len(numbers) == parts[0].manifest["model"][name] else numbers
