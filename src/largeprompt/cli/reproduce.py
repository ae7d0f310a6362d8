"""`largeprompt reproduce`: the paper, statement by statement."""

import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    fast: Annotated[
        bool,
        typer.Option(
            "--fast", help="Fewer draws and one covariance: about a minute or two."
        ),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a reproduction already there.")
    ] = False,
) -> None:
    """Compute every statement of the paper that can be, and say what became of it.

    Writes verdicts.json, reproduction.html (one file, opens offline), and each figure
    as SVG, PNG and PDF beside its data in parquet: all of them or none. An interrupted
    run goes on from the parts that it has finished.
    """
    # torch and the charts take seconds to import
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    from largeprompt.cli.reproduction_files import check_free, kept_parts, write
    from largeprompt.experiments import reproduction

    check_free(out, overwrite=overwrite)
    started = time.perf_counter()
    columns = (
        *Progress.get_default_columns()[:2],
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks = {
            name: bars.add_task(name, total=None, start=False)
            for name in reproduction.PARTS
        }

        def progress(part: str, done: int, total: int) -> None:
            bars.start_task(tasks[part])
            bars.update(tasks[part], completed=done, total=total)

        findings = list(
            reproduction.reproduce(kept_parts(out), fast=fast, progress=progress)
        )
    about = reproduction.manifest(fast=fast, started=started)
    write(findings, about, out, overwrite=overwrite)
    counts = Counter(claim.verdict.value for part in findings for claim in part.claims)
    typer.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    typer.echo(f"page: {out / 'reproduction.html'}")
