r"""What a model's rotary embedding does to a query that is moved to a later position.

Rotary embeddings turn the pair $(x_i, x_{i + r/2})$ of a query at position $p$ by the
angle $p f_i$. Moving it by $m$ positions turns it by $m f_i$ more, whatever $p$ was, so
that queries which a prompt has produced can be asked from where later ones will stand.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from largeprompt.compress.prompt import Rotation

STANDARD = frozenset({"default", "linear", "llama3", "yarn"})  # fixed frequencies


def rotation_of(model: PreTrainedModel, layer: int) -> Rotation | None:
    """Return how the queries of one layer move, or None where that is not known.

    The frequencies are those of the model's rotary module, for the layer's type where
    it has several. The model's own `apply_rotary_pos_emb` is asked whether it turns
    halves against each other at these frequencies; whatever else it does gives None.

    Args:
        model: The model.
        layer: The number of the layer.
    """
    decoder = model.get_decoder()
    rotary = getattr(decoder, "rotary_emb", None)
    apply = getattr(sys.modules[type(decoder).__module__], "apply_rotary_pos_emb", None)
    if rotary is None or apply is None:
        return None
    config = model.config.get_text_config(decoder=True)
    types = getattr(config, "layer_types", None)
    layer_type = None if types is None else types[layer]
    frequencies = _frequencies(rotary, layer_type)
    if frequencies is None or not _turns_halves(apply, frequencies):
        return None
    return lambda query, by: turn(query, frequencies, by)


def turn(
    query: Float[Tensor, "*b k"], frequencies: Float[Tensor, " r"], by: int
) -> Float[Tensor, "*b k"]:
    """Turn the first `2 r` coordinates of queries as `by` later positions do.

    Args:
        query: Queries after rotary embedding.
        frequencies: The angle of each pair at one position, in radians.
        by: How many positions to move.
    """
    angle = by * frequencies.to(query.device)
    cos, sin = angle.cos().to(query.dtype), angle.sin().to(query.dtype)
    r = len(frequencies)
    one, other, rest = query.split([r, r, query.shape[-1] - 2 * r], -1)
    turned = (one * cos - other * sin, other * cos + one * sin, rest)
    return torch.cat(turned, -1)


def _frequencies(rotary: nn.Module, layer_type: str | None) -> Tensor | None:
    """Return the frequencies of a rotary module whose kind keeps them fixed."""
    kind: Any = getattr(rotary, "rope_type", None)
    name = "inv_freq"
    if isinstance(kind, dict):
        kind, name = kind.get(layer_type), f"{layer_type}_inv_freq"
    frequencies = getattr(rotary, name, None)
    return frequencies if kind in STANDARD else None


def _turns_halves(apply: Callable[..., Any], frequencies: Tensor) -> bool:
    """Whether the model's function turns halves, tried at one position."""
    r = len(frequencies)
    query = torch.linspace(-1, 1, 2 * r, dtype=torch.float64).view(1, 1, 1, 2 * r)
    angle = torch.cat([3 * frequencies.cpu().double()] * 2).view(1, 1, 2 * r)
    try:
        theirs, _ = apply(query, query, angle.cos(), angle.sin())
    except (TypeError, RuntimeError):  # another signature: another convention
        return False
    ours = turn(query, frequencies.cpu().double(), 3)
    return theirs.shape == ours.shape and torch.allclose(theirs, ours)
