"""Audit a safetensors file of queries, keys and values, of one layer or several."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from largeprompt.audit.checks import PRECISIONS, check_eps
from largeprompt.audit.layer import LayerArrays
from largeprompt.audit.layers import audit_layers
from largeprompt.audit.result import AuditResult
from largeprompt.audit.selection import Question
from largeprompt.errors import ArraysError

QUERY = re.compile(r"q(\d{0,6})")


def audit_file(
    path: Path | str,
    *,
    lengths: Sequence[int],
    queries: int = 32,
    eps: float = 0.1,
    window: int | None = None,
    causal: bool = True,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    seed: int | None = None,
) -> AuditResult:
    """Audit arrays in a file: `q`, `k`, `v`, or `q0`, `k0`, `v0`, `q1` and so on.

    Each is [heads, tokens, width]; a number `scale` (`scale0`, ...) is the factor of
    the inner products, one over the root of the width where there is none. One layer is
    in memory at a time.

    Args:
        path: A safetensors file.
        lengths: Prompt lengths in tokens.
        queries: Query positions at each length.
        eps: Relative error that verdicts and `tokens_needed` ask for.
        window: Tokens in a sliding window, in every layer audited.
        causal: Whether a token sees earlier tokens only.
        layers: Layers of the file to audit; every one when None.
        heads: The query heads of each layer to audit; every one when None.
        seed: Where query positions are drawn from; None for the usual ones.

    Raises:
        ArraysError: The file is missing, no safetensors file, or lacks an array.
        ValueError: Arrays do not fit together, or an argument is wrong.
    """
    check_eps(eps)
    path = Path(path)
    question = Question(sorted(set(lengths)), queries, eps, layers, heads, seed)
    try:
        with safe_open(path, "pt") as file:
            return audit_layers(
                _layers(file, path, layers),
                question,
                window=window,
                causal=causal,
                name=path.name,
            )
    except (OSError, SafetensorError) as error:
        raise ArraysError(f"cannot read arrays from {path}: {error}") from error


def _layers(
    file: Any, path: Path, wanted: Sequence[int] | None
) -> Iterator[tuple[int, LayerArrays]]:
    names = set(file.keys())
    found = [match for match in map(QUERY.fullmatch, names) if match]
    suffixes = {int(match[1] or 0): match[1] for match in found}
    if not suffixes:
        raise ArraysError(
            f"{path} must hold q, k and v, or q0, k0, v0 and so on; "
            f"got {', '.join(sorted(names)[:8]) or 'nothing'}"
        )
    if len(suffixes) < len(found):
        raise ArraysError(f"{path} must name a layer once; got q and q0, or q01 and q1")
    numbers = sorted(suffixes if wanted is None else set(wanted))
    for number in numbers:
        if number not in suffixes:
            raise ValueError(
                f"layers must be among those of {path.name}, {sorted(suffixes)}; "
                f"got {number}"
            )
        yield number, _layer(file, path, suffixes[number], names)


def _layer(file: Any, path: Path, suffix: str, names: set[str]) -> LayerArrays:
    lacking = [name for name in "kv" if name + suffix not in names]
    if lacking:
        raise ArraysError(f"{path} has q{suffix} but no {lacking[0]}{suffix}")
    query, key, value = (_array(file, path, name + suffix) for name in "qkv")
    scale = query.shape[-1] ** -0.5
    if f"scale{suffix}" in names:
        told = file.get_tensor(f"scale{suffix}")
        if told.numel() != 1 or told.is_complex() or not told.isfinite():
            raise ArraysError(
                f"scale{suffix} in {path} must be one finite number; got {told}"
            )
        scale = float(told)
    return LayerArrays(query, key, value, scale)


def _array(file: Any, path: Path, name: str) -> torch.Tensor:
    array = file.get_tensor(name)
    if array.ndim != 3 or 0 in array.shape or array.dtype not in PRECISIONS:
        raise ArraysError(
            f"{name} in {path} must be numbers in half, single or double precision of "
            f"shape [heads, tokens, width]; got {array.dtype} of {list(array.shape)}"
        )
    return array
