"""Audit plain arrays: the queries, keys and values of one layer, without a model."""

import hashlib
import math
import time
from collections.abc import Sequence

import pyarrow as pa
from jaxtyping import Float
from torch import Tensor

from largeprompt.audit.columns import SCHEMA
from largeprompt.audit.manifest import build_manifest
from largeprompt.audit.prefixes import Prefixes
from largeprompt.audit.result import AuditResult
from largeprompt.audit.rows import head_rows
from largeprompt.audit.statistics import query_statistics
from largeprompt.audit.surface import law_surface


def audit_arrays(
    q: Float[Tensor, "h n k"],
    k: Float[Tensor, "hkv n k"],
    v: Float[Tensor, "hkv n v"],
    *,
    lengths: Sequence[int],
    queries: int = 32,
    eps: float = 0.1,
    scale: float | None = None,
    window: int | None = None,
) -> AuditResult:
    r"""Audit the heads of one layer, causal softmax attention over `scale * q.k`.

    Args:
        q: Queries as the softmax meets them: after rotations and norms.
        k: Keys; each key/value head serves `h / hkv` consecutive query heads.
        v: Values.
        lengths: Prompt lengths; each is measured on the first tokens of the arrays.
        queries: Query positions at each length, the last ones; at most half of it.
        eps: Relative error that verdicts and `tokens_needed` ask for.
        scale: Factor of the inner products; $1/\sqrt{d_k}$ when None.
        window: Width of a sliding window, the query's own token included.

    Raises:
        ValueError: Shapes do not fit, numbers are not finite, or a length is out of
            reach of the arrays.
    """
    started = time.perf_counter()
    check_arrays(q, k, v)
    ordered = check_lengths(lengths, q.shape[1])
    check_eps(eps)
    q, k, v = (array.detach().cpu() for array in (q, k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    law, rows = law_surface(), []
    for n in ordered:
        prefixes = Prefixes.last(n, queries, window)
        rows += head_rows(
            query_statistics(q, k, v, prefixes, scale=scale),
            prefixes,
            law,
            layer=0,
            kv_heads=k.shape[0],
            eps=eps,
            parity_errors=None,
        )
    manifest = build_manifest(
        model={
            "name": "arrays",
            "source": "arrays",
            "sha256": _digest(q, k, v),
            "architecture": "one layer of causal attention",
            "layers": 1,
            "heads": q.shape[0],
            "kv_heads": k.shape[0],
            "head_dim": q.shape[-1],
            "dtype": str(q.dtype).removeprefix("torch."),
        },
        text={"name": "arrays", "sha256": None, "tokens": q.shape[1]},
        lengths=ordered,
        queries=queries,
        eps=eps,
        started=started,
    )
    return AuditResult(pa.Table.from_pylist(rows, SCHEMA), manifest)


def check_arrays(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise a ValueError unless the arrays are one layer of attention."""
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not q.ndim == k.ndim == v.ndim == 3:
        raise ValueError(f"q, k and v must be [heads, tokens, width]; got {shapes}")
    if not q.shape[1] == k.shape[1] == v.shape[1]:
        raise ValueError(f"q, k and v must have the same tokens; got {shapes}")
    if q.shape[2] != k.shape[2] or k.shape[0] != v.shape[0]:
        raise ValueError(f"q, k and v must fit together; got {shapes}")
    if k.shape[0] == 0 or q.shape[0] == 0 or q.shape[0] % k.shape[0]:
        raise ValueError(
            f"query heads must be a multiple of key/value heads; got {shapes}"
        )
    for name, array in (("q", q), ("k", k), ("v", v)):
        if not array.isfinite().all():
            raise ValueError(f"{name} must be finite; got an infinity or a NaN")


def check_lengths(
    lengths: Sequence[int], longest: int, reason: str = "the arrays' tokens"
) -> list[int]:
    """Return the lengths in order, once each; raise a ValueError beyond `longest`."""
    ordered = sorted(set(lengths))
    if not ordered:
        raise ValueError("lengths must name at least one length; got none")
    if ordered[-1] > longest:
        raise ValueError(
            f"lengths must be at most {longest} ({reason}); got {ordered[-1]}"
        )
    return ordered


def check_eps(eps: float) -> None:
    """Raise a ValueError unless `eps` is a positive number."""
    if not 0 < eps < math.inf:
        raise ValueError(f"eps must be a positive number; got {eps}")


def _digest(*arrays: Tensor) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array.float().contiguous().numpy().tobytes())
    return digest.hexdigest()
