"""Replace chosen heads of a model by their linear limit, and see what it predicts."""

import dataclasses
import datetime
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import pyarrow as pa
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from largeprompt.audit.checks import check_eps, check_lengths
from largeprompt.audit.manifest import peak_rss_bytes, versions
from largeprompt.errors import NoHeadError
from largeprompt.hf.ablation_attention import HeadName
from largeprompt.hf.ablation_evaluation import Effect, Intact
from largeprompt.hf.ablation_limit import Replacement
from largeprompt.hf.ablation_result import (
    DEFINITIONS,
    FORMAT,
    SCHEMA,
    AblationResult,
    Row,
)
from largeprompt.hf.ablation_selection import (
    KEPT,
    LINEAR,
    Selection,
    audited_heads,
    curve,
    select,
    unaudited_heads,
)
from largeprompt.hf.ablation_store import EffectStore
from largeprompt.hf.audit import audit_model, describe
from largeprompt.hf.models import ModelDescription, weights_sha256
from largeprompt.hf.texts import Text, token_ids

COMPARED = 16  # fewest positions that averages are taken over
PACKAGES = ("transformers", "safetensors")
Progress = Callable[[int, int], None]


@final
@dataclasses.dataclass(frozen=True)
class Ablation:
    """What to replace, and where it is looked at.

    Attributes:
        tokens: Length of the text.
        heads: Sets of heads, as `ablation_selection.select` reads them.
        curve: Whether growing sets are replaced too, in the audit's order and in a
            random one.
        replacement: What of a prefix stays exact, and how the rest answers.
        eps: The relative error at which the audit calls a head linear.
        seed: Where random sets are drawn from.
    """

    tokens: int = 1024
    heads: tuple[str, ...] = ("linear-ones",)
    curve: bool = False
    replacement: Replacement = dataclasses.field(default_factory=Replacement)
    eps: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        """Check that something is left to compare.

        Raises:
            ValueError: The text is as short as what stays exact, no set of heads is
                asked for, or eps is no positive number.
        """
        check_eps(self.eps)
        shortest = self.replacement.kept + COMPARED + 1
        if self.tokens < shortest:
            raise ValueError(
                f"tokens must be at least {shortest}, {self.replacement.kept} of them "
                f"exact and {COMPARED} predictions compared; got {self.tokens}"
            )
        if not self.heads and not self.curve:
            raise ValueError("heads must name at least one set; got none")

    @property
    def needs_audit(self) -> bool:
        """Whether an audit decides which heads are replaced."""
        return self.curve or not {LINEAR, KEPT}.isdisjoint(self.heads)


def ablate_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: Text | str,
    ablation: Ablation,
    *,
    progress: Progress | None = None,
    description: ModelDescription | None = None,
    resume_in: Path | None = None,
) -> AblationResult:
    """Replace the attention of chosen heads by its linear limit, end to end.

    Every query keeps the first and the most recent tokens exact; the rest of its prefix
    answers by its own moments (`hf.ablation_limit`). Predictions are compared with the
    intact model's at the positions whose prefix has such a rest.

    Args:
        model: A decoder that transformers can run with `sdpa` attention.
        tokenizer: Its tokenizer.
        text: What it reads.
        ablation: What to replace.
        progress: Called with the number of sets done and their total.
        description: Where the model came from; from the model itself when None.
        resume_in: A directory in which effects are kept until the end, so that an
            interrupted run goes on; kept nowhere when None.

    Raises:
        ValueError: A head that the model lacks, or a length beyond its context.
        NoHeadError: The audit finds no head for any of the sets, and there is no curve.
        TextError: The text is shorter than the length.
        UnsupportedModelError: The model's attention or its logits are not handled.
    """
    started = time.perf_counter()
    check_fits(model, ablation)
    text = Text("text", text) if isinstance(text, str) else text
    tokens = token_ids(text, tokenizer, ablation.tokens)
    if description is None:
        name = model.config.name_or_path or type(model).__name__
        description = ModelDescription(name, name, weights_sha256(model))
    heads = unaudited_heads(*head_counts(model))
    if ablation.needs_audit:
        audit = audit_model(
            model,
            tokenizer,
            text,
            [ablation.tokens],
            eps=ablation.eps,
            description=description,
        )
        heads = audited_heads(audit.heads.to_pylist(), ablation.eps)
    selections = [select(wanted, heads, ablation.seed) for wanted in ablation.heads]
    if not ablation.curve and not any(chosen.heads for chosen in selections):
        raise NoHeadError(
            f"the audit finds no head for {' or '.join(ablation.heads)} within "
            f"{ablation.eps:g} at {ablation.tokens:,} tokens; ask for a larger eps, "
            "for more tokens, or name heads"
        )
    if ablation.curve:
        selections += curve(heads, ablation.seed)
    about: dict[str, Any] = {
        "model": describe(model, description),
        "text": {
            "name": text.name,
            "sha256": text.sha256,
            "tokens": ablation.tokens,
        },
        "replacement": dataclasses.asdict(ablation.replacement),
        "versions": versions(PACKAGES),
    }
    store = None if resume_in is None else EffectStore(resume_in, about)
    intact = Intact.read(model, tokens, ablation.replacement.kept)
    effects: dict[tuple[HeadName, ...], Effect] = {}  # the same heads, asked for twice
    for done, selection in enumerate(selections):
        if progress is not None:
            progress(done, len(selections))
        if selection.heads not in effects:
            effects[selection.heads] = _effect(intact, selection, ablation, store)
    rows = [_row(selection, effects[selection.heads]) for selection in selections]
    if progress is not None:
        progress(len(selections), len(selections))
    return AblationResult(
        pa.Table.from_pylist(rows, SCHEMA),
        {
            "format": FORMAT,
            **about,
            "arguments": {
                "tokens": ablation.tokens,
                "heads": list(ablation.heads),
                "curve": ablation.curve,
                "eps": ablation.eps,
            },
            "positions": ablation.tokens - 1 - ablation.replacement.kept,
            "seed": ablation.seed,
            "machine": (
                f"{platform.platform()}, {os.cpu_count()} cores, "
                f"{torch.get_num_threads()} threads"
            ),
            "created": datetime.datetime.now(datetime.UTC).isoformat(
                timespec="seconds"
            ),
            "seconds": time.perf_counter() - started,
            "peak_rss_bytes": peak_rss_bytes(),
            "definitions": DEFINITIONS,
        },
    )


def check_fits(model: PreTrainedModel, ablation: Ablation) -> None:
    """Refuse an ablation that the model is too small for, before any work is done.

    Raises:
        ValueError: A head that the model lacks, or a length beyond its context.
    """
    context = model.config.get_text_config().max_position_embeddings
    check_lengths([ablation.tokens], context, "the model's context")
    heads = unaudited_heads(*head_counts(model))
    for wanted in ablation.heads:
        select(wanted, heads, ablation.seed)


def head_counts(model: PreTrainedModel) -> tuple[int, int]:
    """Return the number of layers, and of query heads in each."""
    config = model.config.get_text_config()
    return config.num_hidden_layers, config.num_attention_heads


def _effect(
    intact: Intact, selection: Selection, ablation: Ablation, store: EffectStore | None
) -> Effect:
    known = None if store is None else store.get(selection.heads)
    if known is not None:
        return known
    effect = intact.effect(selection.heads, ablation.replacement)
    if store is not None:
        store.put(selection.heads, effect)
    return effect


def _row(selection: Selection, effect: Effect) -> Row:
    return {
        "set": selection.name,
        "order": selection.order,
        "heads_replaced": len(selection.heads),
        "heads": [f"{layer}.{head}" for layer, head in selection.heads],
        **dataclasses.asdict(effect),
    }
