"""The directory that `largeprompt concentration` writes, and what it prints of it."""

from pathlib import Path

from largeprompt.audit.directory import check_directory, write_directory
from largeprompt.experiments import ConcentrationResult
from largeprompt.experiments.result import FILES
from largeprompt.report.concentration_figure import concentration_figure

FIGURES = {f"concentration{suffix}": suffix for suffix in (".svg", ".png")}


def check_free(directory: Path, *, overwrite: bool) -> None:
    """Refuse a directory that holds results, before any work is done.

    Raises:
        ResultError: It is a file, cannot be written to, or results are in the way.
    """
    check_directory(directory, [*FIGURES, *FILES], overwrite=overwrite)


def write(result: ConcentrationResult, directory: Path, *, overwrite: bool) -> None:
    """Write the figures and the files of a result, all of them or none."""
    figures = {
        name: concentration_figure(result, suffix) for name, suffix in FIGURES.items()
    }
    write_directory(directory, figures | result.files(), overwrite=overwrite)


def in_words(result: ConcentrationResult, directory: Path) -> str:
    """Return the table of slopes, and where the rest is."""
    lines = [
        f"{'law':<12} {'quantity':<11} {'slope':>7} {'interval':^18} "
        f"{'exact':>7} {'long run':>8}"
    ]
    lines += [
        f"{slope.law:<12} {slope.quantity:<11} {slope.slope:7.3f} "
        f"[{slope.low:7.3f}, {slope.high:7.3f}] "
        f"{_number(slope.exact):>7} {_number(slope.asymptotic):>8}"
        for slope in result.slopes
    ]
    return "\n".join([*lines, f"written to {directory}"])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
