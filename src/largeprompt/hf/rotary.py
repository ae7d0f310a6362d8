"""The keys of a layer before rotary embedding, overheard while they are rotated.

transformers' models rotate queries and keys with a function `apply_rotary_pos_emb` of
their module just before attention. For as long as a block lasts, that function also
remembers the keys it was given; what it returns is untouched.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

NAME = "apply_rotary_pos_emb"

Overheard = Callable[[Tensor], Tensor | None]
"""A layer's keys as attention gets them -> the same before rotation, None if unknown.

Both are [batch, heads, tokens, width].
"""


@contextlib.contextmanager
def before_rotary(model: PreTrainedModel) -> Iterator[Overheard]:
    """Remember the keys that a model rotates, one layer at a time.

    Keys count as rotated where the rotation's answer is what attention gets, in its
    leading coordinates where only these are rotated; so layers without positions and
    models without rotary embeddings have none. The functions that the model's modules
    had before are restored at the end, whatever happens.
    """
    last = threading.local()
    with contextlib.ExitStack() as restored:
        for module in _modules(model):
            honest = getattr(module, NAME)
            restored.callback(setattr, module, NAME, honest)
            setattr(module, NAME, _listening(honest, last))

        def overheard(key: Tensor) -> Tensor | None:
            given, rotated = last.__dict__.pop("keys", (None, None))
            if given is None or given.shape[:-1] != key.shape[:-1]:
                return None
            width = given.shape[-1]
            if not torch.equal(rotated[:, :, -1], key[:, :, -1, :width]):
                return None
            return given if width == key.shape[-1] else _joined(given, key)

        yield overheard


def _listening(honest: Callable[..., Any], last: threading.local) -> Callable[..., Any]:
    def rotate(query: Tensor, key: Tensor, *rest: Any, **options: Any) -> Any:
        answer = honest(query, key, *rest, **options)
        last.keys = key, answer[1]
        return answer

    return rotate


def _joined(given: Tensor, key: Tensor) -> Tensor:
    """Return keys of which only the leading coordinates are rotated."""
    return torch.cat([given, key[..., given.shape[-1] :]], -1)


def _modules(model: PreTrainedModel) -> list[ModuleType]:
    names = sorted({type(module).__module__ for module in model.modules()})
    found = [sys.modules[name] for name in names if name in sys.modules]
    return [module for module in found if hasattr(module, NAME)]
