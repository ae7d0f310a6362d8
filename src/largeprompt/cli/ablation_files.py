"""The directory that `largeprompt ablate` writes, and what it prints of it."""

import shutil
from pathlib import Path

from largeprompt.audit.directory import check_directory, write_directory
from largeprompt.hf.ablation_result import FILES, AblationResult
from largeprompt.report.ablation_figure import ablation_figure

FIGURES = {f"ablation{suffix}": suffix for suffix in (".svg", ".html")}


def kept_parts(directory: Path) -> Path:
    """Return where the effects of an unfinished ablation are kept: beside it."""
    return directory.parent / f".{directory.name}.parts"


def check_free(directory: Path, *, overwrite: bool) -> None:
    """Refuse a directory that holds results, before any work is done.

    Raises:
        ResultError: It is a file, cannot be written to, or results are in the way.
    """
    check_directory(directory, [*FIGURES, *FILES], overwrite=overwrite)


def write(result: AblationResult, directory: Path, *, overwrite: bool) -> None:
    """Write all files of an ablation or none, then forget the kept effects."""
    figures: dict[str, bytes] = {}
    if result.manifest["arguments"]["curve"]:
        figures = {k: ablation_figure(result, suffix) for k, suffix in FIGURES.items()}
    write_directory(directory, figures | result.files(), overwrite=overwrite)
    shutil.rmtree(kept_parts(directory))


def in_words(result: AblationResult, directory: Path) -> str:
    """Return a line a set, how many heads fit a budget, and where the rest is."""
    width = max(len(row["set"]) for row in result.rows)
    lines = [
        f"{'set':<{width}} {'heads':>5} {'loss':>8} {'change':>9} {'± 1 se':>8} "
        f"{'KL':>9} {'top-1':>6}"
    ]
    lines += [
        f"{row['set']:<{width}} {row['heads_replaced']:>5} {row['loss']:8.4f} "
        f"{row['loss_change']:+9.4f} {row['loss_change_error']:8.4f} "
        f"{row['kl']:9.5f} {row['top1_agreement']:6.1%}"
        for row in result.rows
    ]
    within = result.summary["heads_within_budget"].get("audit", [])
    lines += [
        f"at most {entry['loss_budget']:g} nats more: {entry['heads']} of "
        f"{result.summary['heads']} heads"
        for entry in within
    ]
    return "\n".join([*lines, f"written to {directory}"])
