"""Layer by layer: how far a model's tokens are from a Gaussian of the same moments."""

import contextlib
import datetime
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from largeprompt.audit.checks import check_lengths
from largeprompt.audit.manifest import peak_rss_bytes, versions
from largeprompt.errors import UnsupportedModelError
from largeprompt.hf.attention import LayerRecord, recording
from largeprompt.hf.audit import describe
from largeprompt.hf.models import ModelDescription, weights_sha256
from largeprompt.hf.texts import Text, token_ids
from largeprompt.hf.token_law_result import (
    DEFINITIONS,
    FORMAT,
    HIDDEN,
    KEYS,
    SCHEMA,
    TokenLawResult,
)
from largeprompt.hf.token_law_statistics import (
    moments_of,
    participation_ratio,
    sliced,
    unit_directions,
)

FIRST = 4  # tokens that are left out: attention sinks, of a law of their own
SHORTEST = 32  # tokens that a law is judged from
PACKAGES = ("transformers", "safetensors")
Progress = Callable[[int, int], None]
Row = dict[str, Any]


def token_laws(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: Text | str,
    tokens: int,
    *,
    directions: int = 64,
    seed: int = 0,
    progress: Progress | None = None,
    description: ModelDescription | None = None,
) -> TokenLawResult:
    """Compare the tokens before and after every layer with Gaussian ones.

    One forward pass; nothing outlives its layer but the rows. Statistics in float64.

    Args:
        model: A decoder that transformers can run with `sdpa` attention.
        tokenizer: Its tokenizer.
        text: What it reads.
        tokens: How many tokens of it.
        directions: Random directions that laws are projected on.
        seed: Where directions and Gaussian tokens are drawn from.
        progress: Called with the number of layers done and their total.
        description: Where the model came from; from the model itself when None.

    Raises:
        ValueError: Too few tokens or directions, or a length beyond the context.
        TextError: The text is shorter.
        UnsupportedModelError: The model's layers or its attention are not handled.
    """
    started = time.perf_counter()
    if tokens < FIRST + SHORTEST:
        raise ValueError(f"tokens must be at least {FIRST + SHORTEST}; got {tokens}")
    if directions < 1:
        raise ValueError(f"directions must be at least 1; got {directions}")
    config = model.config.get_text_config()
    check_lengths([tokens], config.max_position_embeddings, "the model's context")
    text = Text("text", text) if isinstance(text, str) else text
    read = token_ids(text, tokenizer, tokens)
    if description is None:
        name = model.config.name_or_path or type(model).__name__
        description = ModelDescription(name, name, weights_sha256(model))
    generator = torch.Generator().manual_seed(seed)
    rows: list[Row] = []

    def hidden(layer: int, states: Float[Tensor, "n d"]) -> None:
        rows.append(_row(HIDDEN, layer, None, states, directions, generator))
        if progress is not None:
            progress(layer, config.num_hidden_layers)

    def keys(record: LayerRecord) -> None:
        for head, key in enumerate(record.key):
            rows.append(_row(KEYS, record.layer, head, key, directions, generator))

    _listen(model, read, hidden, keys)
    rows.sort(key=lambda row: (row["what"], row["layer"], row["kv_head"] or 0))
    return TokenLawResult(
        pa.Table.from_pylist(rows, SCHEMA),
        {
            "format": FORMAT,
            "model": describe(model, description),
            "text": {"name": text.name, "sha256": text.sha256, "tokens": tokens},
            "arguments": {"directions": directions},
            "seed": seed,
            "versions": versions(PACKAGES),
            "created": datetime.datetime.now(datetime.UTC).isoformat(
                timespec="seconds"
            ),
            "seconds": time.perf_counter() - started,
            "peak_rss_bytes": peak_rss_bytes(),
            "definitions": DEFINITIONS,
        },
    )


def decoder_layers(model: PreTrainedModel) -> nn.ModuleList:
    """Return the model's list of layers.

    Raises:
        UnsupportedModelError: It has none, or several of that length.
    """
    count = model.config.get_text_config().num_hidden_layers
    lists = [
        module
        for module in model.base_model.modules()
        if isinstance(module, nn.ModuleList) and len(module) == count
    ]
    if len(lists) != 1:
        raise UnsupportedModelError(
            f"{type(model).__name__} has {len(lists)} lists of {count} layers, not one"
        )
    return lists[0]


@torch.inference_mode()
def _listen(
    model: PreTrainedModel,
    tokens: Int64[Tensor, " n"],
    hidden: Callable[[int, Tensor], None],
    keys: Callable[[LayerRecord], None],
) -> None:
    """Run the model once and hand on hidden states and keys as layers pass."""
    with _hooks(decoder_layers(model), hidden), recording(model, keys):
        model.base_model(input_ids=tokens[None].to(model.device), use_cache=False)


@contextlib.contextmanager
def _hooks(
    layers: nn.ModuleList, hidden: Callable[[int, Tensor], None]
) -> Iterator[None]:
    """Call `hidden` with what enters each layer, and with what leaves the last."""

    def entering(layer: int) -> Callable[..., None]:
        def hook(_: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            states = given[0] if given else named["hidden_states"]
            hidden(layer, states[0].cpu())

        return hook

    def leaving(_: nn.Module, __: Any, answer: Any) -> None:
        states = answer if isinstance(answer, Tensor) else answer[0]
        hidden(len(layers), states[0].cpu())

    handles = [
        layer.register_forward_pre_hook(entering(index), with_kwargs=True)
        for index, layer in enumerate(layers)
    ]
    handles.append(layers[-1].register_forward_hook(leaving))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _row(
    what: str,
    layer: int,
    head: int | None,
    states: Float[Tensor, "n d"],
    directions: int,
    generator: torch.Generator,
) -> Row:
    seen = states[FIRST:].double()
    law = moments_of(seen)
    along = unit_directions(law.dim, directions, generator)
    measured = sliced(seen, along)
    calibration = sliced(law.sample(len(seen), generator), along)
    return {
        "what": what,
        "layer": layer,
        "kv_head": head,
        "tokens": len(seen),
        "effective_dim": participation_ratio(law),
        **measured._asdict(),
        **{f"{k}_gaussian": v for k, v in calibration._asdict().items()},
    }
