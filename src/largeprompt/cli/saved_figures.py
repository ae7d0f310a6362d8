"""The figures of a directory, whatever kind of result it holds."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from largeprompt.audit import AuditResult, Comparison
from largeprompt.audit.comparison import TABLE as COMPARISON
from largeprompt.audit.files import write_whole
from largeprompt.errors import ResultError
from largeprompt.experiments.result import TABLE, ConcentrationResult
from largeprompt.experiments.sweep.catalogue import experiment_named
from largeprompt.experiments.sweep.folder import MANIFEST, saved_sweep
from largeprompt.experiments.sweep.gather import gathered
from largeprompt.report.comparison_figure import TITLES, comparison_figure
from largeprompt.report.concentration_figure import concentration_figure
from largeprompt.report.figure import Figure, write_figure
from largeprompt.report.sweep_figure import sweep_figure

DATA = ".csv"


def drawn(
    directory: Path,
    out: Path,
    columns: Mapping[str, str | None],
    suffixes: Sequence[str],
) -> Iterator[Path]:
    """Draw what a directory holds, and yield the path of each figure.

    Raises:
        ValueError: A column or suffix is unknown, or columns are named for a result
            whose figure is fixed.
        ResultError: The directory holds nothing that can be drawn.
    """
    if (directory / MANIFEST).exists():
        folder, sweep = saved_sweep(directory)
        drawing = experiment_named(sweep.experiment).drawing
        named = {name: value for name, value in columns.items() if value is not None}
        if named.get("panel") == "none":
            named["panel"] = ""
        drawing = dataclasses.replace(drawing, **named)
        table = gathered(folder, sweep)
        for suffix in suffixes:
            path = out / f"sweep{suffix}"
            write_whole(path, sweep_figure(table, drawing, sweep.experiment, suffix))
            yield path
        return
    if any(value is not None for value in columns.values()):
        raise ValueError("columns must be named for a sweep only; others are fixed")
    if (directory / TABLE).exists():
        result = ConcentrationResult.load(directory)
        for suffix in suffixes:
            path = out / f"concentration{suffix}"
            write_whole(path, concentration_figure(result, suffix))
            yield path
    elif (directory / "heads.parquet").exists():
        yield from _of_audit(AuditResult.load(directory), out, suffixes)
    elif (directory / COMPARISON).exists():
        yield from _of_comparison(Comparison.load(directory), out, suffixes)
    else:
        raise ResultError(
            f"{directory} holds no sweep, concentration, audit or comparison"
        )


def _of_audit(audit: AuditResult, out: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    """Draw an audit, and write the numbers behind each figure beside it."""
    for number, text in enumerate(audit.texts, 1):
        one, mark = audit.only(text), _mark(number, audit.texts)
        for kind in Figure:
            for suffix in (*suffixes, DATA):
                path = out / f"{kind.value}{mark}{suffix}"
                write_figure(one, kind, path)
                yield path


def _of_comparison(
    comparison: Comparison, out: Path, suffixes: Sequence[str]
) -> Iterator[Path]:
    """Draw a comparison, and write the numbers behind each figure beside it."""
    for number, text in enumerate(comparison.texts, 1):
        one, mark = comparison.only(text), _mark(number, comparison.texts)
        for kind in TITLES:
            for suffix in (*suffixes, DATA):
                path = out / f"{kind}{mark}{suffix}"
                write_whole(path, comparison_figure(one, kind, suffix))
                yield path


def _mark(number: int, texts: Sequence[str]) -> str:
    """Return what tells the files of several texts apart, as the reports' names do."""
    return f"-{number}" if len(texts) > 1 else ""
