"""Audit every attention head of a language model on one text or several."""

import dataclasses
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from largeprompt.audit.checks import check_eps, check_lengths
from largeprompt.audit.manifest import arguments, build_manifest, versions
from largeprompt.audit.result import AuditResult
from largeprompt.audit.rows import Row
from largeprompt.audit.selection import Question, chosen
from largeprompt.audit.store import Blocks
from largeprompt.audit.tables import tables
from largeprompt.hf.capture import Progress, capture, reads_forward
from largeprompt.hf.labels import labelled
from largeprompt.hf.models import ModelDescription, weights_sha256
from largeprompt.hf.shapes import ModelShape
from largeprompt.hf.texts import Text, token_ids

PACKAGES = ("transformers", "safetensors")


def audit_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: Text | str | Sequence[Text | str],
    lengths: Sequence[int],
    *,
    queries: int = 32,
    eps: float = 0.1,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    description: ModelDescription | None = None,
    resume_in: Path | str | None = None,
    overwrite: bool = False,
) -> AuditResult:
    """Say what softmax attention does in every head of a model.

    A decoder reads each text once, at the longest length; an encoder once a length.
    The model's own output is not changed. Statistics run where a layer lives.

    Args:
        model: A decoder or an encoder that transformers can run with `sdpa` attention,
            or a decoder with soft-capped logits.
        tokenizer: Its tokenizer.
        text: What it reads: a `Text` from `load_text`, or the text itself; or several.
        lengths: Prompt lengths in tokens; each is measured on the first tokens.
        queries: Query positions at each length: the last ones, at most half of them;
            spread evenly in an encoder.
        eps: Relative error that verdicts and `tokens_needed` ask for.
        layers: The layers to audit; every one when None.
        heads: The query heads of each layer to audit; every one when None.
        seed: Draws the query positions instead, among the last n / 8.
        progress: Called with the number of layers done and their total.
        description: Where the model came from; from the model itself when None.
        resume_in: A directory that keeps finished layers, and where an interrupted
            audit of the same model, texts and arguments goes on.
        overwrite: Whether unfinished layers of another audit in it are dropped.

    Raises:
        ValueError: A length is beyond the model's context, a layer or head is not in
            the model, or another argument wrong.
        TextError: A text is shorter than the longest length.
        UnsupportedModelError: The model's attention is not handled.
        NotFiniteError: The model computes a NaN or an infinity.
        ParityError: Attention recomputed from q, k, v is not what the model computed.
        ResultError: `resume_in` holds another audit, or cannot be written to.
    """
    started = time.perf_counter()
    question = check_question(
        model, Question(sorted(set(lengths)), queries, eps, layers, heads, seed)
    )
    texts = named_texts(text)
    tokens_read = question.lengths[-1]
    entries = [
        {"name": t.name, "sha256": t.sha256, "tokens": tokens_read} for t in texts
    ]
    readings = _readings(model, tokenizer, texts, question)
    if description is None:
        name = model.config.name_or_path or type(model).__name__
        description = ModelDescription(name, name, weights_sha256(model))
    about = describe(model, description)
    blocks = None
    if resume_in is not None:
        key = {
            "model": about,
            "texts": entries,
            "arguments": arguments(question),
            "versions": versions(PACKAGES),
        }
        blocks = Blocks.open(resume_in, key, overwrite=overwrite)
    rows: list[Row] = []
    for number, (index, tokens, asked) in enumerate(readings):

        def told(done: int, layers: int, number: int = number) -> None:
            if progress is not None:
                progress(number * layers + done, len(readings) * layers)

        found = capture(
            model,
            tokens,
            asked,
            told,
            text=texts[index].name,
            blocks=blocks,
            block=f"text-{index}-{len(tokens)}-",
        )
        rows += labelled(found, tokens, tokenizer)
    order = {t.name: place for place, t in enumerate(texts)}
    rows.sort(key=lambda r: (order[r["text"]], r["layer"], r["n"], r["head"]))
    manifest = build_manifest(
        model=about,
        texts=entries,
        question=question,
        started=started,
        packages=PACKAGES,
    )
    heads_table, profiles = tables(rows)
    return AuditResult(heads_table, manifest, profiles)


def check_question(model: PreTrainedModel, question: Question) -> Question:
    """Return the question if it can be put to the model.

    Raises:
        ValueError: A length is beyond the model's context, a layer or head is not in
            the model, or eps or the queries are wrong.
    """
    shape = ModelShape.of(model)
    beyond = math.inf if shape.context is None else shape.context
    check_lengths(question.lengths, beyond, "the model's context")
    check_eps(question.eps)
    chosen(question.layers, shape.layers, "layers")
    chosen(question.heads, shape.heads, "heads")
    for n in question.lengths:
        question.prefixes(n, None, causal=True)
    return question


def named_texts(text: Text | str | Sequence[Text | str]) -> list[Text]:
    """Return the texts as `Text`; one that has no name is called `text`.

    Raises:
        ValueError: There is none, or two have the same name.
    """
    several = [text] if isinstance(text, Text | str) else list(text)
    plain = sum(isinstance(t, str) for t in several)
    texts = [
        t if isinstance(t, Text) else Text("text" if plain == 1 else f"text {i}", t)
        for i, t in enumerate(several, 1)
    ]
    names = [t.name for t in texts]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"texts must be at least one, of different names; got {names}")
    return texts


def describe(model: PreTrainedModel, description: ModelDescription) -> dict[str, Any]:
    """Return what the manifest says of a model."""
    shape = ModelShape.of(model)
    return {
        "name": description.name,
        "source": description.source,
        "sha256": description.sha256,
        "architecture": type(model).__name__,
        "layers": shape.layers,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "context": shape.context,
        "dtype": str(model.dtype).removeprefix("torch."),
    }


Reading = tuple[int, Any, Question]
"""The number of a text, the tokens of one pass over it, and what that pass answers."""


def _readings(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[Text],
    question: Question,
) -> list[Reading]:
    """Return the forward passes: one a text, and one a length too in an encoder."""
    if reads_forward(model):
        longest = question.lengths[-1]
        return [
            (index, token_ids(text, tokenizer, longest), question)
            for index, text in enumerate(texts)
        ]
    return [
        (
            index,
            token_ids(text, tokenizer, n, whole=True),
            dataclasses.replace(question, lengths=[n]),
        )
        for index, text in enumerate(texts)
        for n in question.lengths
    ]
