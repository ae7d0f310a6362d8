"""What an ablation found: a row per set of heads, a summary, and their files."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, final

import pyarrow as pa

from largeprompt.hf.result_files import (
    MANIFEST,
    as_json,
    as_parquet,
    read_files,
    read_parquet,
    with_manifest,
)

FORMAT = "largeprompt.ablation/1"
TABLE, SUMMARY = "ablation.parquet", "summary.json"
FILES = (TABLE, SUMMARY, MANIFEST)
BUDGETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Changes of the loss, in nats a token, that the summary answers for."""

DEFINITIONS = {
    "set": "What was asked for; on a curve its place there.",
    "order": "audit or random on a curve; chosen otherwise.",
    "heads_replaced": "How many heads answer by their linear limit.",
    "heads": "They, as LAYER.HEAD.",
    "loss": "Cross-entropy of the next token, in nats, over the positions compared.",
    "loss_change": "The same minus that of the intact model.",
    "loss_change_error": "Its standard error, from contiguous groups of positions.",
    "kl": "Mean divergence of the predictions from the intact model's, in nats.",
    "top1_agreement": "Share of positions with the same most likely token.",
}
NUMBERS = ("loss", "loss_change", "loss_change_error", "kl", "top1_agreement")
SCHEMA = pa.schema(
    [
        ("set", pa.string()),
        ("order", pa.string()),
        ("heads_replaced", pa.int32()),
        ("heads", pa.list_(pa.string())),
        *((name, pa.float64()) for name in NUMBERS),
    ]
)

Row = dict[str, Any]


@final
@dataclasses.dataclass(frozen=True, eq=False)
class AblationResult:
    """The effects of replacing sets of heads of one model on one text.

    Attributes:
        table: A row per set; see `DEFINITIONS`.
        manifest: What was run, with which versions, where and how long.
    """

    table: pa.Table
    manifest: dict[str, Any]

    @property
    def rows(self) -> list[Row]:
        """The table as a list of rows."""
        return self.table.to_pylist()

    @property
    def summary(self) -> dict[str, Any]:
        """The numbers of every set, and how many heads fit within a budget."""
        rows = self.rows
        chosen = {
            row["set"]: {k: row[k] for k in ("heads_replaced", *NUMBERS)}
            for row in rows
            if row["order"] == "chosen"
        }
        orders = sorted({row["order"] for row in rows} - {"chosen"})
        return {
            "heads": self.manifest["model"]["layers"] * self.manifest["model"]["heads"],
            "sets": chosen,
            "heads_within_budget": {
                order: [
                    {"loss_budget": budget, "heads": heads_within(rows, order, budget)}
                    for budget in BUDGETS
                ]
                for order in orders
            },
        }

    def files(self) -> dict[str, bytes]:
        """Return the files by name, the manifest last with the hashes of the others."""
        contents = {TABLE: as_parquet(self.table), SUMMARY: as_json(self.summary)}
        return with_manifest(contents, self.manifest)

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read the files of a result.

        Raises:
            ResultError: A file is missing, truncated, of another format, or the files
                do not belong together.
        """
        contents, manifest = read_files(directory, (TABLE, SUMMARY), FORMAT)
        return cls(read_parquet(contents[TABLE]), manifest)


def heads_within(rows: Sequence[Row], order: str, budget: float) -> int:
    """Return how many heads of a curve fit before the loss first leaves the budget.

    A later, larger set that happens to fit again does not count.
    """
    fitting = 0
    for row in sorted(
        (row for row in rows if row["order"] == order),
        key=lambda row: row["heads_replaced"],
    ):
        if row["loss_change"] > budget:
            break
        fitting = row["heads_replaced"]
    return fitting
