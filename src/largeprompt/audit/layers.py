"""Audit layers of plain arrays, one after the other, without a model."""

import hashlib
import time
from collections.abc import Iterable

from largeprompt.audit.checks import check_arrays, check_lengths
from largeprompt.audit.layer import LayerArrays, layer_rows
from largeprompt.audit.manifest import build_manifest
from largeprompt.audit.result import AuditResult
from largeprompt.audit.rows import Row
from largeprompt.audit.selection import Question, chosen
from largeprompt.audit.tables import tables


def audit_layers(
    layers: Iterable[tuple[int, LayerArrays]],
    question: Question,
    *,
    window: int | None,
    causal: bool,
    name: str,
) -> AuditResult:
    """Return the audit of layers that are held one at a time.

    Args:
        layers: The number and the arrays of each layer.
        question: What to measure; its `layers` have been chosen already.
        window: Tokens in a sliding window, the query's own included.
        causal: Whether a token sees earlier tokens only.
        name: What the arrays are called.

    Raises:
        ValueError: Shapes do not fit, within a layer or between two, numbers are not
            finite, or a length or head is out of reach of the arrays.
    """
    started = time.perf_counter()
    digest, shape, numbers = hashlib.sha256(), None, []
    rows: list[Row] = []
    for number, arrays in layers:
        check_arrays(arrays.query, arrays.key, arrays.value)
        h, tokens, width = arrays.query.shape
        here = (h, len(arrays.key), tokens, width, arrays.query.dtype)
        shape = here if shape is None else shape
        if here != shape:
            raise ValueError(
                "layers must have the same heads, tokens, width and dtype; got "
                f"{shape} and, in layer {number}, {here}"
            )
        check_lengths(question.lengths, tokens)
        heads = chosen(question.heads, h, "heads")
        for n in question.lengths:
            prefixes = question.prefixes(n, window, causal=causal)
            rows += layer_rows(
                arrays,
                prefixes,
                layer=number,
                heads=heads,
                eps=question.eps,
                text=name,
                compared=None,
                drawn=n == question.lengths[-1],
            )
        numbers.append(number)
        for array in (arrays.query, arrays.key, arrays.value):
            digest.update(array.float().cpu().contiguous().numpy().tobytes())
    if shape is None:
        raise ValueError("an audit needs at least one layer; got none")
    h, kv_heads, tokens, width, dtype = shape
    direction = "causal attention" if causal else "attention both ways"
    manifest = build_manifest(
        model={
            "name": name,
            "source": "arrays",
            "sha256": digest.hexdigest(),
            "architecture": direction,
            "layers": len(numbers),
            "heads": h,
            "kv_heads": kv_heads,
            "head_dim": width,
            "dtype": str(dtype).removeprefix("torch."),
        },
        texts=[{"name": name, "sha256": None, "tokens": tokens}],
        question=question,
        started=started,
    )
    heads_table, profiles = tables(rows)
    return AuditResult(heads_table, manifest, profiles)
