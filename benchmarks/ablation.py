"""Heads of a real model replaced by their linear limit, end to end."""

import dataclasses

from benchmarks.record import Row
from largeprompt.hf import load_model, load_text
from largeprompt.hf.ablation import Ablation, ablate_model
from largeprompt.hf.ablation_limit import Replacement
from largeprompt.hf.ablation_mass import Bulk
from largeprompt.hf.ablation_result import AblationResult, heads_within
from largeprompt.hf.models import LoadedModel

TESTS = ["tests/hf/test_hf_ablation.py", "tests/hf/test_hf_ablation_sets.py"]
DISTRIBUTIONS = ["largeprompt", "numpy", "torch", "transformers"]
TOKENS = 1024
BUDGETS = (0.003, 0.01, 0.03, 0.1)
SETS = ("linear-ones", "kept-ones", "all")
MEASURES = {  # a column's name in words, and its unit
    "loss_change": ("change of loss", "nats"),
    "kl": ("divergence", "nats"),
    "top1_agreement": ("same top token", ""),
}


def measure() -> list[Row]:
    """Replace sets of heads of the embedded model on two texts."""
    loaded = load_model("smollm2")
    rows = []
    for text in ("prose", "code"):
        finite = Ablation(tokens=TOKENS, heads=SETS, curve=True)
        result = _ablated(loaded, text, finite)
        rows += _sets(result, text, "finite law")
        rows += _curve(result, text)
        literal = dataclasses.replace(
            finite,
            curve=False,
            heads=SETS[1:],
            replacement=Replacement(bulk=Bulk.LIMIT),
        )
        rows += _sets(_ablated(loaded, text, literal), text, "literal limit")
    return rows


def _ablated(loaded: LoadedModel, text: str, ablation: Ablation) -> AblationResult:
    return ablate_model(
        loaded.model,
        loaded.tokenizer,
        load_text(text),
        ablation,
        description=loaded.description,
    )


def _sets(result: AblationResult, text: str, bulk: str) -> list[Row]:
    """Rows of the sets that were named; the range of a loss is two standard errors."""
    rows = []
    for row in result.rows:
        if row["order"] != "chosen":
            continue
        name = f"{row['set']} ({row['heads_replaced']} heads), {bulk}, {text}"
        for column, (words, unit) in MEASURES.items():
            error = 2 * row["loss_change_error"] if column == "loss_change" else 0.0
            value = row[column]
            rows.append(
                Row(
                    "ablation",
                    f"{words}: {name}",
                    unit,
                    value,
                    value - error,
                    value + error,
                    {"tokens": TOKENS, "runs": 1},
                )
            )
    return rows


def _curve(result: AblationResult, text: str) -> list[Row]:
    """Rows of the heads that fit a budget, in the audit's order and in a random one."""
    points = [
        {k: row[k] for k in ("order", "heads_replaced", *MEASURES)}
        for row in result.rows
        if row["order"] != "chosen"
    ]
    rows = []
    for order in ("audit", "random"):
        for budget in BUDGETS:
            heads = float(heads_within(result.rows, order, budget))
            details = {"tokens": TOKENS, "curve": points}
            quantity = f"linear at once within {budget:g} nats, {order} order, {text}"
            rows.append(
                Row("ablation", quantity, "heads", heads, heads, heads, details)
            )
    return rows
