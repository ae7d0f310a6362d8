"""Evaluate methods of compression on one model: heads, next tokens, bytes, times."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from jaxtyping import Int64
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from largeprompt.hf.evaluation_cell import EXACT, Cell, compressed_cell, exact_cell
from largeprompt.hf.evaluation_manifest import evaluation_manifest
from largeprompt.hf.evaluation_memory import prefill_peak_bytes
from largeprompt.hf.evaluation_methods import Cached
from largeprompt.hf.evaluation_passkey import answered, hidden, passkey_row
from largeprompt.hf.evaluation_plan import EvaluationPlan
from largeprompt.hf.evaluation_reading import Reading, read
from largeprompt.hf.evaluation_result import SCHEMA, CompressionResult
from largeprompt.hf.evaluation_store import CellStore
from largeprompt.hf.models import ModelDescription
from largeprompt.hf.texts import Text, token_ids

Progress = Callable[[str, int, int], None]
Keyed = tuple[dict[str, Any], Callable[[Reading], Cell]]


def evaluate_compression(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[Text],
    plan: EvaluationPlan,
    description: ModelDescription,
    *,
    store: CellStore | None = None,
    progress: Progress | None = None,
) -> CompressionResult:
    """Compress the beginning of each text in every way, and go on from there.

    Each text is read exactly once, with its continuation; methods are given what that
    pass computed for the prompt, and nothing of the continuation.

    Args:
        model: A decoder with `sdpa` attention.
        tokenizer: Its tokenizer.
        texts: What it reads.
        plan: Methods, budgets and lengths.
        description: Where the model came from.
        store: Where finished cells are kept and found again.
        progress: Called with what is being done, the number of cells done and their
            total.

    Raises:
        ValueError: The model's context is too short.
        TextError: A text is too short.
        CacheError: A budget is too small for a method.
        UnsupportedModelError: The model's attention is not handled.
    """
    started = time.perf_counter()
    plan.check_context(model.config.get_text_config().max_position_embeddings)
    total_tokens = plan.prompt_tokens + plan.continuation
    tokens = {text: token_ids(text, tokenizer, total_tokens) for text in texts}
    each = 1 + len(plan.methods) * len(plan.budgets)
    total = len(texts) * each * (1 + len(plan.passkey_depths))
    cells: dict[str, list[Cell]] = {text.name: [] for text in texts}
    passkeys: list[dict[str, Any]] = []
    done = 0

    def tell(what: str) -> None:
        if progress is not None:
            progress(what, done, total)

    for text, ids in tokens.items():
        reading: Reading | None = None
        for key, measure in _cells(model, plan, ids):
            name = f"{text.name}: {key['method']} {key['budget']:g}"
            whole = {
                **key,
                "model": description.sha256,
                "text": text.sha256,
                "prompt_tokens": plan.prompt_tokens,
                "continuation": plan.continuation,
                "queries": plan.queries,
                "error_queries": plan.error_queries,
                "prefill_peak": plan.prefill_peak,
            }
            cell = None if store is None else store.find(whole)
            if cell is None:
                if reading is None:
                    tell(f"{text.name}: reading")
                    reading = read(model, ids, plan.prompt_tokens, plan.queries)
                tell(name)
                cell = measure(reading)
                if store is not None:
                    store.keep(whole, cell)
            cells[text.name].append(cell)
            done += 1
            tell(name)
        reading = None  # a reading is large
        for depth in plan.passkey_depths:
            tell(f"{text.name}: pass key at {depth:g}")
            rows = _passkeys(model, tokenizer, plan, ids, depth)
            passkeys.extend({"text": text.name, **row} for row in rows)
            done += each
            tell(f"{text.name}: pass key at {depth:g}")
    errors = [
        {"text": name, **row}
        for name, found in cells.items()
        for cell in found
        for row in cell.errors
    ]
    return CompressionResult(
        errors=pa.Table.from_pylist(errors, SCHEMA),
        summary=[
            {"text": name, **cell.summary}
            for name, found in cells.items()
            for cell in found
        ],
        passkeys=passkeys,
        manifest=evaluation_manifest(model, description, texts, plan, started),
    )


def _cells(
    model: PreTrainedModel, plan: EvaluationPlan, tokens: Int64[Tensor, " n"]
) -> Iterator[Keyed]:
    """Yield the key of each cell and what measures it."""
    prompt = tokens[: plan.prompt_tokens]

    def with_peak(cell: Cell, method: object, budget: float) -> Cell:
        peak = None
        if plan.prefill_peak and (method is None or isinstance(method, Cached)):
            peak = prefill_peak_bytes(model, prompt, method, budget)
        return Cell({**cell.summary, "prefill_peak_bytes": peak}, cell.errors)

    yield (
        {"method": EXACT, "budget": 1.0, "settings": ""},
        lambda reading: with_peak(exact_cell(model, reading), None, 1.0),
    )
    for name, method in plan.methods.items():
        for budget in plan.budgets:
            yield (
                {"method": name, "budget": budget, "settings": repr(method)},
                lambda reading, name=name, method=method, budget=budget: with_peak(
                    compressed_cell(
                        model, reading, name, method, budget, plan.error_queries
                    ),
                    method,
                    budget,
                ),
            )


def _passkeys(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    plan: EvaluationPlan,
    tokens: Int64[Tensor, " n"],
    depth: float,
) -> list[dict[str, Any]]:
    """Hide a sentence at a depth and ask every cache for it; maps have no cache."""
    whole = hidden(tokenizer, tokens, plan.prompt_tokens, depth)
    reading = read(model, whole, plan.prompt_tokens, plan.queries)
    exact = answered(model, reading, None, 1.0)
    rows = [{"method": EXACT, "budget": 1.0, "depth": depth}]
    answers = [exact]
    for name, method in plan.methods.items():
        if isinstance(method, Cached):
            for budget in plan.budgets:
                rows.append({"method": name, "budget": budget, "depth": depth})
                answers.append(answered(model, reading, method, budget))
    return [
        {**row, **passkey_row(tokenizer, answer, exact)}
        for row, answer in zip(rows, answers, strict=True)
    ]
