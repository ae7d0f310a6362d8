"""Audit every attention head of a language model on one text."""

import time
from collections.abc import Sequence

import pyarrow as pa
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from largeprompt.audit.arrays import check_eps, check_lengths
from largeprompt.audit.columns import SCHEMA
from largeprompt.audit.manifest import build_manifest
from largeprompt.audit.result import AuditResult
from largeprompt.hf.capture import Progress, Question, capture
from largeprompt.hf.models import ModelDescription, weights_sha256
from largeprompt.hf.texts import Text, token_ids

PACKAGES = ("transformers", "safetensors")


def audit_model(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: Text | str,
    lengths: Sequence[int],
    *,
    queries: int = 32,
    eps: float = 0.1,
    progress: Progress | None = None,
    description: ModelDescription | None = None,
) -> AuditResult:
    """Say what softmax attention does in every head of a model.

    One forward pass over the longest length; the model's own output is not changed.

    Args:
        model: A decoder that transformers can run with `sdpa` attention.
        tokenizer: Its tokenizer.
        text: What it reads: a `Text` from `load_text`, or the text itself.
        lengths: Prompt lengths in tokens; each is measured on the first tokens.
        queries: Query positions at each length, the last ones; at most half of it.
        eps: Relative error that verdicts and `tokens_needed` ask for.
        progress: Called with the number of layers done and their total.
        description: Where the model came from; from the model itself when None.

    Raises:
        ValueError: A length is beyond the model's context, or another argument wrong.
        TextError: The text is shorter than the longest length.
        UnsupportedModelError: The model's attention is not handled.
        ParityError: Attention recomputed from q, k, v is not what the model computed.
    """
    started = time.perf_counter()
    config = model.config.get_text_config()
    context = config.max_position_embeddings
    ordered = check_lengths(lengths, context, "the model's context")
    check_eps(eps)
    text = Text("text", text) if isinstance(text, str) else text
    tokens = token_ids(text, tokenizer, ordered[-1])
    rows = capture(model, tokens, Question(ordered, queries, eps), progress)
    if description is None:
        name = model.config.name_or_path or type(model).__name__
        description = ModelDescription(name, name, weights_sha256(model))
    heads = config.num_attention_heads
    manifest = build_manifest(
        model={
            "name": description.name,
            "source": description.source,
            "sha256": description.sha256,
            "architecture": type(model).__name__,
            "layers": config.num_hidden_layers,
            "heads": heads,
            "kv_heads": getattr(config, "num_key_value_heads", None) or heads,
            "head_dim": getattr(config, "head_dim", None)
            or config.hidden_size // heads,
            "dtype": str(model.dtype).removeprefix("torch."),
        },
        text={"name": text.name, "sha256": text.sha256, "tokens": len(tokens)},
        lengths=ordered,
        queries=queries,
        eps=eps,
        started=started,
        packages=PACKAGES,
    )
    return AuditResult(pa.Table.from_pylist(rows, SCHEMA), manifest)
