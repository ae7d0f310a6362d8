"""`largeprompt audit`: what softmax attention does in every head of a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from largeprompt.cli.arguments import read_lengths, wrong_arguments
from largeprompt.errors import ResultError

if TYPE_CHECKING:
    from largeprompt.audit import AuditResult

GIBI = 2**30


def audit(
    model: Annotated[
        str,
        typer.Argument(help="smollm2 (embedded), a folder, a GGUF file, or a hub id."),
    ],
    out: Annotated[Path, typer.Option(help="Directory for the result.")],
    text: Annotated[
        str, typer.Option(help="prose, code, or a text file in UTF-8.")
    ] = "prose",
    lengths: Annotated[
        str, typer.Option(help="Prompt lengths in tokens, between commas.")
    ] = "256,512,1024,2048",
    queries: Annotated[
        int, typer.Option(min=1, help="Query positions measured at each length.")
    ] = 32,
    eps: Annotated[
        float, typer.Option(help="Relative error that a head must meet.")
    ] = 0.1,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an audit that is in --out.")
    ] = False,
) -> None:
    """Measure every attention head of a model and write a report.

    Writes heads.parquet, manifest.json and report.html (one file, opens offline).
    """
    with wrong_arguments():
        wanted = read_lengths(lengths)
    if not overwrite and (out / "manifest.json").exists():
        raise ResultError(
            f"{out} already holds an audit; add --overwrite to replace it"
        )
    result = _measured(model, text, wanted, queries, eps)
    result.save(out, overwrite=overwrite)
    _report(result, out / "report.html")


def _measured(
    model: str, text: str, lengths: list[int], queries: int, eps: float
) -> "AuditResult":
    """Load the model, say what the audit will take, and run it under a progress bar."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    from largeprompt.audit.arrays import check_eps
    from largeprompt.hf import audit_model, estimate, load_model, load_text

    console = Console(stderr=True)
    with wrong_arguments():
        check_eps(eps)
    reading = load_text(text)
    with console.status(f"loading {model}"):
        loaded = load_model(model)
    with wrong_arguments():
        cost = estimate(loaded.model, lengths, queries=queries)
    console.print(
        f"about {cost.seconds:.0f} s, and {cost.peak_bytes / GIBI:.1f} GiB at the peak"
    )
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("layers", total=None)
        return audit_model(
            loaded.model,
            loaded.tokenizer,
            reading,
            lengths,
            queries=queries,
            eps=eps,
            progress=lambda done, total: progress.update(
                task, completed=done, total=total
            ),
            description=loaded.description,
        )


def _report(result: "AuditResult", path: Path) -> None:
    """Write the report and print its summary and where it is."""
    from largeprompt.report import write_report
    from largeprompt.report.records import records
    from largeprompt.report.words import summarise

    write_report(result, path)
    summary = summarise(result, records(result))
    for line in (*summary.headline, *summary.findings, *summary.advice):
        typer.echo(line)
    seconds, peak = result.manifest["seconds"], result.manifest["peak_rss_bytes"]
    typer.echo(f"measured in {seconds:.0f} s, {peak / GIBI:.1f} GiB at the peak")
    typer.echo(f"report: {path}")
