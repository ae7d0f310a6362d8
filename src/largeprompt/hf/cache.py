"""A transformers cache that compresses a long prompt once it has been read."""

import copy
import math
from collections.abc import Iterator
from typing import Any, Literal, Self, final

from torch import Tensor
from transformers import Cache, DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer
from typing_extensions import override

from largeprompt.compress.calibrated import CalibratedLimit
from largeprompt.compress.indexing import ClusterIndex
from largeprompt.compress.prompt import Compressor
from largeprompt.errors import CacheError, UnsupportedModelError
from largeprompt.hf.attention_cache import is_listening
from largeprompt.hf.cache_budget import Budget, ErrorTarget, Share, SharedBudget
from largeprompt.hf.cache_build import compress_together
from largeprompt.hf.cache_layer import Folding, FoldingLayer
from largeprompt.hf.cache_report import CacheReport, LayerReport
from largeprompt.hf.cache_rotation import rotation_of
from largeprompt.hf.cache_segments import Method
from largeprompt.kernels import Kernel


@final
class LargePromptCache(Cache):
    """Keys and values of a prompt, compressed when the prompt is over.

    The prompt is read exactly, in one forward pass or several. The first pass of a
    single token says that it is over: every full-attention layer is then compressed
    before that token attends to it, and later tokens are kept exactly. `compress` does
    it at once, for a next question of several tokens. Layers with a sliding window stay
    transformers' own.

    It needs the attention of `cache_attention` or `compressed`: a cache by itself never
    sees the queries.

    Args:
        model: The model that will use the cache.
        budget: The share of an exact cache's bytes that the prompt may hold; at 1 or
            above nothing is compressed. It is shared out among KV heads by what
            compression costs them (`SharedBudget`). Or a rule of one's own: `Share`
            gives each head the same, and compresses faster.
        error: Instead of a budget: the median relative error on held-out queries that
            no KV head's outputs may exceed (`ErrorTarget`).
        mode: `compact` drops tokens. `indexed` keeps them, and the budget is then the
            share of the keys that one query step may read.
        method: How: a `Compressor` in the compact mode, by default the calibrated
            linear limit, or a `ClusterIndex` in the indexed mode.
        minimum_length: A prompt of fewer tokens stays exact.
        queries: How many of the prompt's last queries the method may calibrate on.
        tail_limit: When so many tokens have followed they are compressed too, before
            the next pass of a single token; None keeps all of them.
        prompt_length: The length of the prompt, padding included, where it is known:
            each layer is then compressed as soon as it has read so many positions, and
            no more than one layer is ever held exactly.
        kernel: What decodes; by default the fastest that is installed.

    Raises:
        UnsupportedModelError: No layer of the model has full attention to keys and
            values of its own.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        budget: float | Budget | None = None,
        error: float | None = None,
        mode: Literal["compact", "indexed"] = "compact",
        method: Method | None = None,
        minimum_length: int = 2048,
        queries: int = 256,
        tail_limit: int | None = None,
        prompt_length: int | None = None,
        kernel: Kernel | None = None,
    ) -> None:
        _check_positive(queries=queries, tail_limit=tail_limit)
        rule = _budget(budget, error, mode)
        never = isinstance(rule, Share) and rule.share >= 1
        folding = Folding(
            method=_method(mode, method),
            budget=rule,
            minimum_length=math.inf if never else max(1, minimum_length),
            queries=queries,
            tail_limit=None if never else tail_limit,
            prompt_length=prompt_length,
            kernel=kernel,
        )
        super().__init__(layers=_layers(model, folding))
        self.config = model.config.get_text_config(decoder=True)
        self.folding, self.frozen = folding, False

    @override
    def update(
        self,
        key_states: Tensor,
        value_states: Tensor,
        layer_idx: int,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor]:
        self._check_ready()
        layer = self.layers[layer_idx]
        if layer is next(self._folding()):
            self._check_whole()
        length = key_states.shape[-2]
        if isinstance(layer, FoldingLayer) and layer.compresses_before(length):
            self.compress()
        return super().update(key_states, value_states, layer_idx, *args, **kwargs)

    def compress(self) -> None:
        """Compress what has been read so far, as if the prompt were over.

        Prompts below the minimum length stay exact.

        Raises:
            CacheError: The budget is too small for the method, the cache is frozen, or
                its queries were not seen.
        """
        self._check_ready()
        self._check_whole()
        compress_together(list(self._folding()), self.folding)

    def clone(self) -> Self:
        """Return a cache that goes on from here by itself, and is not frozen.

        What is compressed is shared, not copied: a prompt read once answers many
        questions.
        """
        other = copy.copy(self)
        other.layers = [
            copy.copy(layer)
            if isinstance(layer, FoldingLayer)
            else copy.deepcopy(layer)
            for layer in self.layers
        ]
        other.frozen = False
        return other

    def freeze(self) -> Self:
        """Refuse every change from now on, and return the cache; `clone` goes on."""
        self.frozen = True
        return self

    @property
    def nbytes(self) -> int:
        """The memory that the cache holds, sliding layers included."""
        return sum(_nbytes(layer) for layer in self.layers)

    def report(self) -> CacheReport:
        """Return what the cache holds, what it cost, and how far off it is."""
        rows = tuple(
            LayerReport(
                layer=index,
                nbytes=layer.nbytes,
                exact_nbytes=layer.exact_nbytes,
                seconds=layer.seconds,
                errors=tuple(layer.errors),
            )
            for index, layer in enumerate(self.layers)
            if isinstance(layer, FoldingLayer)
        )
        saved = sum(row.exact_nbytes - row.nbytes for row in rows)
        return CacheReport(
            tokens=self.get_seq_length(),
            nbytes=self.nbytes,
            exact_nbytes=self.nbytes + saved,
            seconds=sum(row.seconds for row in rows),
            layers=rows,
        )

    @override
    def crop(self, tokens_to_remove: int) -> None:
        self._check_ready()
        super().crop(tokens_to_remove)

    @override
    def reorder_cache(self, beam_idx: Any) -> None:
        self._check_ready()
        super().reorder_cache(beam_idx)

    @override
    def reset(self) -> None:
        if self.frozen:
            raise CacheError("the cache is frozen; change a clone() of it")
        super().reset()

    def _folding(self) -> Iterator[FoldingLayer]:
        return (layer for layer in self.layers if isinstance(layer, FoldingLayer))

    def _check_ready(self) -> None:
        """Refuse a change that the cache could not answer for."""
        if self.frozen:
            raise CacheError("the cache is frozen; change a clone() of it")
        if not is_listening(self.config):
            raise CacheError(
                "the cache does not see the model's queries; use it inside `with "
                "largeprompt.compressed(model, ...)` or `with cache_attention(model)`"
            )
        if any(layer.waiting for layer in self._folding()):
            raise CacheError(
                "a layer's queries were not seen: a forward pass was broken off, or "
                "the model does not use the attention of its configuration"
            )

    def _check_whole(self) -> None:
        """Refuse to go on from a forward pass that was broken off."""
        lengths = {layer.get_seq_length() for layer in self._folding()}
        if len(lengths) > 1:
            raise CacheError(
                "the layers do not hold the same tokens: a forward pass was broken "
                f"off; got lengths {sorted(lengths)}"
            )


def _budget(budget: float | Budget | None, error: float | None, mode: str) -> Budget:
    """Return the rule that a budget or an error target stands for."""
    _check_positive(budget=None if isinstance(budget, Budget) else budget, error=error)
    if (budget is None) == (error is None):
        raise ValueError(
            f"a budget or an error is needed, not both; got {budget} and {error}"
        )
    if error is not None:
        if mode == "indexed":
            raise ValueError("the indexed mode takes a budget; got an error")
        return ErrorTarget(error)
    if isinstance(budget, Budget):
        return budget
    share = float(budget or 0)
    return Share(share) if mode == "indexed" or share >= 1 else SharedBudget(share)


def _method(mode: str, method: Method | None) -> Method:
    """Return the method, or the mode's own."""
    kinds = {"compact": Compressor, "indexed": ClusterIndex}
    if mode not in kinds:
        raise ValueError(f"the mode must be compact or indexed; got {mode}")
    if method is None:
        return CalibratedLimit() if mode == "compact" else ClusterIndex()
    if not isinstance(method, kinds[mode]):
        raise ValueError(f"the mode {mode} needs another method; got {method}")
    return method


def _layers(model: PreTrainedModel, folding: Folding) -> list[Any]:
    """Return transformers' own layers for the model, full attention replaced."""
    config = model.config.get_text_config(decoder=True)
    if model.config.is_encoder_decoder or getattr(config, "kv_sharing_modes", None):
        raise UnsupportedModelError(
            f"{type(model).__name__} attends to keys that are not its layer's own"
        )
    layers = [
        FoldingLayer(folding, rotation_of(model, index))
        if type(layer) is DynamicLayer
        else layer
        for index, layer in enumerate(DynamicCache(config=config).layers)
    ]
    if not any(isinstance(layer, FoldingLayer) for layer in layers):
        raise UnsupportedModelError(
            f"no layer of {type(model).__name__} has full attention; there is nothing "
            "to compress"
        )
    return layers


def _nbytes(layer: Any) -> int:
    if isinstance(layer, FoldingLayer):
        return layer.nbytes
    held = (getattr(layer, name, None) for name in ("keys", "values"))
    return sum(tensor.nbytes for tensor in held if isinstance(tensor, Tensor))


def _check_positive(**numbers: float | None) -> None:
    for name, number in numbers.items():
        if number is not None and not number > 0:
            raise ValueError(f"{name} must be positive; got {number}")
