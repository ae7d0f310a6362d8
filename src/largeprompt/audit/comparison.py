"""Two audits, head by head: what is different in the second."""

import dataclasses
import datetime
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from largeprompt.audit.comparison_columns import (
    COMPARISON_SCHEMA,
    DEFINITIONS,
    Row,
    compared_row,
)
from largeprompt.audit.comparison_overview import comparison_overview
from largeprompt.audit.manifest import versions
from largeprompt.audit.result import AuditResult
from largeprompt.errors import ComparisonError, ResultError

FORMAT = "largeprompt.comparison/1"
TABLE = "comparison.parquet"
MANIFEST = "comparison.json"
TOLD = ("model", "texts", "arguments", "versions", "machine", "created")


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Two audits of heads that answer to each other.

    `heads` has one row per text, layer, head and length that both audits measured,
    with the columns of `audit.comparison_columns`; `manifest` says what the two
    audits, `a` and `b`, are and in what they differ.
    """

    heads: pa.Table
    manifest: dict[str, Any]

    def __post_init__(self) -> None:
        if self.manifest.get("format") != FORMAT:
            raise ValueError(
                f"manifest['format'] must be {FORMAT!r}; "
                f"got {self.manifest.get('format')!r}"
            )
        if not self.heads.schema.equals(COMPARISON_SCHEMA):
            raise ValueError(
                f"heads must have the columns {COMPARISON_SCHEMA.names} and their "
                f"types; got {self.heads.schema.names}"
            )

    @property
    def texts(self) -> list[str]:
        """The names of the texts compared; `a → b` where two are different ones."""
        return self.heads["text"].unique().to_pylist()

    @property
    def summary(self) -> dict[str, Any]:
        """What changed at the longest length (`audit.comparison_overview`)."""
        return comparison_overview(self.heads, self.manifest["eps"])

    def only(self, text: str) -> Self:
        """Return the comparison on one of the texts.

        Raises:
            ValueError: No text has that name.
        """
        if text not in self.texts:
            raise ValueError(f"text must be one of {self.texts}; got {text!r}")
        return type(self)(self.heads.filter(pc.field("text") == text), self.manifest)

    def files(self) -> dict[str, bytes]:
        """Return the names and contents of the files that hold the comparison."""
        table = io.BytesIO()
        pq.write_table(self.heads, table)
        text = json.dumps(self.manifest, indent=2) + "\n"
        return {TABLE: table.getvalue(), MANIFEST: text.encode()}

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read what `files` wrote into a directory.

        Raises:
            ResultError: A file is missing, truncated or of another format.
        """
        directory = Path(directory)
        try:
            manifest = json.loads((directory / MANIFEST).read_bytes())
            return cls(pq.read_table(directory / TABLE), manifest)
        except (OSError, ValueError, AttributeError) as error:
            raise ResultError(f"{directory} is no comparison: {error}") from error


def compare_audits(a: AuditResult, b: AuditResult) -> Comparison:
    """Return what changes from audit `a` to audit `b`, head by head.

    Two checkpoints of one model, one model on two texts, or under two settings: the
    head at a layer and place of `a` is compared with the one at the same place of `b`,
    at every length both measured. Where each read one text the two are compared
    whatever they are; otherwise texts are paired by their names.

    Args:
        a: What is compared with: before, say.
        b: What is compared: after.

    Raises:
        ComparisonError: The heads of the two do not answer to each other, no length or
            text is in both, or their verdicts mean different things.
    """
    _check(a, b)
    pairs = _paired_texts(a, b)
    rows: list[Row] = []
    for name, text_a, text_b in pairs:
        first, second = _by_place(a, text_a), _by_place(b, text_b)
        rows += [
            compared_row(name, first[place], second[place])
            for place in sorted(first.keys() & second.keys())
        ]
    if not rows:
        raise ComparisonError(
            "no head was measured at one length in both audits: lengths "
            f"{_numbers(a, 'n')} and {_numbers(b, 'n')}, layers "
            f"{_numbers(a, 'layer')} and {_numbers(b, 'layer')}"
        )
    manifest = {
        "format": FORMAT,
        "a": {name: a.manifest[name] for name in TOLD},
        "b": {name: b.manifest[name] for name in TOLD},
        "eps": a.manifest["arguments"]["eps"],
        "differences": differences(a.manifest, b.manifest),
        "pairs": len(rows),
        "unpaired": {
            "a": a.heads.num_rows - len(rows),
            "b": b.heads.num_rows - len(rows),
        },
        "versions": versions(),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "definitions": DEFINITIONS,
    }
    return Comparison(pa.Table.from_pylist(rows, COMPARISON_SCHEMA), manifest)


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return what differs in two manifests: model, texts, arguments, versions.

    Returns:
        From the name of an entry, such as `model.dtype`, to its two values.
    """
    first, second = _flat(a), _flat(b)
    return {
        name: [first.get(name), second.get(name)]
        for name in [*first, *(name for name in second if name not in first)]
        if first.get(name) != second.get(name)
    }


def _check(a: AuditResult, b: AuditResult) -> None:
    """Refuse audits whose heads or verdicts do not answer to each other."""
    grids = [
        f"{m['layers']} layers of {m['heads']} heads"
        for m in (a.manifest["model"], b.manifest["model"])
    ]
    if grids[0] != grids[1]:
        raise ComparisonError(
            "heads are compared place by place, but these models have different "
            f"places: {grids[0]}, and {grids[1]}"
        )
    aims = [result.manifest["arguments"]["eps"] for result in (a, b)]
    if aims[0] != aims[1]:
        raise ComparisonError(
            f"the verdicts of one audit ask for an error of {aims[0]:g}, of the other "
            f"for {aims[1]:g}; audit again with the same eps"
        )


def _paired_texts(a: AuditResult, b: AuditResult) -> list[tuple[str, str, str]]:
    """Return what a pair of texts is called, and the two names."""
    if len(a.texts) == len(b.texts) == 1:
        (first,), (second,) = a.texts, b.texts
        return [(first if first == second else f"{first} → {second}", first, second)]
    shared = [name for name in a.texts if name in b.texts]
    if not shared:
        raise ComparisonError(
            f"no text was read in both audits: {', '.join(a.texts)}, and "
            f"{', '.join(b.texts)}"
        )
    return [(name, name, name) for name in shared]


def _by_place(result: AuditResult, text: str) -> dict[tuple[int, int, int], Row]:
    """Return the rows of a text by length, layer and head."""
    rows = result.heads.filter(pc.field("text") == text).to_pylist()
    return {(row["n"], row["layer"], row["head"]): row for row in rows}


def _numbers(result: AuditResult, column: str) -> Sequence[int]:
    return sorted(result.heads[column].unique().to_pylist())


def _flat(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what tells audits apart, each under one name."""
    found = {f"model.{name}": value for name, value in manifest["model"].items()}
    texts = manifest["texts"]
    for name in ("name", "sha256", "tokens"):
        found[f"text.{name}"] = ", ".join(str(text[name]) for text in texts)
    for group in ("arguments", "versions"):
        found |= {f"{group}.{name}": v for name, v in manifest[group].items()}
    found["machine"] = manifest["machine"]
    return found
