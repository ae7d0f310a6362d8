"""One exact pass over a prompt and its continuation, and caches filled from it.

Every method is then given the same prompt without reading it again, and is compared
with what the model itself computed. Methods see the prompt alone: what they may
calibrate on ends where the continuation begins.
"""

import dataclasses
import inspect
from typing import Any, final

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from transformers import Cache, PreTrainedModel

from largeprompt.compress.prompt import LayerPrompt
from largeprompt.errors import UnsupportedModelError
from largeprompt.hf.attention import LayerRecord, recording
from largeprompt.hf.cache_layer import FoldingLayer
from largeprompt.hf.cache_rotation import rotation_of


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LayerReading:
    """One layer: keys and values of all tokens, and its last queries.

    `w` of the queries belong to the prompt, then come the `m` of the continuation.
    """

    key: Float[Tensor, "hkv n k"]
    value: Float[Tensor, "hkv n v"]
    query: Float[Tensor, "h w+m k"]
    output: Float[Tensor, "h m v"]
    scale: float


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Reading:
    """What an exact pass saw.

    Attributes:
        tokens: The prompt, then its continuation.
        prompt: How many of them are the prompt.
        layers: Every attention layer, by its number.
        log_probabilities: Of the next token after each token of the continuation.
    """

    tokens: Int64[Tensor, " n"]
    prompt: int
    layers: dict[int, LayerReading]
    log_probabilities: Float[Tensor, "m vocabulary"]

    @property
    def continuation(self) -> Int64[Tensor, " m"]:
        """The tokens after the prompt."""
        return self.tokens[self.prompt :]

    def later_tilts(self, layer: int) -> Float[Tensor, "h m k"]:
        """Return the continuation's queries at a layer, times the scale."""
        read = self.layers[layer]
        return read.scale * read.query[:, -len(self.continuation) :].float()

    def layer_prompt(self, model: PreTrainedModel, layer: int) -> LayerPrompt:
        """Return what a method of compression is given of a layer."""
        read = self.layers[layer]
        key = read.key[:, : self.prompt]
        query = read.query[:, : -len(self.continuation)]
        return LayerPrompt(
            key=key,
            value=read.value[:, : self.prompt],
            valid=torch.ones(key.shape[:2], dtype=torch.bool),
            query=query.unflatten(0, (len(key), -1)),
            scale=read.scale,
            rotate=rotation_of(model, layer),
        )


def read(
    model: PreTrainedModel, tokens: Int64[Tensor, " n"], prompt: int, queries: int
) -> Reading:
    """Run the model once over a prompt and its continuation.

    Args:
        model: A decoder with `sdpa` attention.
        tokens: The prompt and its continuation.
        prompt: How many of the tokens are the prompt; at least one is left.
        queries: How many of the prompt's last queries to keep.

    Raises:
        UnsupportedModelError: The model's attention is not handled.
    """
    later = len(tokens) - prompt
    last = min(queries, prompt) + later
    layers: dict[int, LayerReading] = {}

    def keep(record: LayerRecord) -> None:
        layers[record.layer] = LayerReading(
            key=record.key.clone(),
            value=record.value.clone(),
            query=record.query[:, -last:].clone(),
            output=record.output[:, -later:].clone(),
            scale=record.scale,
        )

    with torch.inference_mode(), recording(model, keep):
        logits = model(
            input_ids=tokens[None].to(model.device),
            use_cache=False,
            logits_to_keep=later,
        ).logits[0]
    if not layers:
        raise UnsupportedModelError(
            f"no layer of {type(model).__name__} called the attention function"
        )
    return Reading(tokens, prompt, layers, logits.float().log_softmax(-1))


def fill(cache: Cache, reading: Reading, device: torch.device) -> None:
    """Fill a new cache with the prompt of a reading, as a forward pass would."""
    later = len(reading.continuation)
    for index, read_ in sorted(reading.layers.items()):
        key, value = (
            part[None, :, : reading.prompt].to(device)
            for part in (read_.key, read_.value)
        )
        cache.update(key, value, index)
        layer = cache.layers[index]
        if isinstance(layer, FoldingLayer):
            query = read_.query[None, :, :-later].to(device)
            layer.hear(query, None, read_.scale)


def next_logits(
    model: PreTrainedModel, cache: Cache, tokens: Int64[Tensor, " m"]
) -> Float[Tensor, "m vocabulary"]:
    """Return the logits after each of the tokens, which the cache takes in."""
    options: dict[str, Any] = {cache_argument(model): cache}
    with torch.inference_mode():
        return model(input_ids=tokens[None].to(model.device), **options).logits[0]


def cache_argument(model: PreTrainedModel) -> str:
    """Return what the model calls the argument that is its cache."""
    names = inspect.signature(model.forward).parameters
    return "cache" if "cache" in names else "past_key_values"
