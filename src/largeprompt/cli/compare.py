"""`largeprompt compare`: what changes from one audit to another, head by head."""

from pathlib import Path
from typing import Annotated

import typer


def compare(
    a: Annotated[Path, typer.Argument(help="Directory of an audit: before, say.")],
    b: Annotated[Path, typer.Argument(help="Directory of another: after.")],
    out: Annotated[Path, typer.Option(help="Directory for the result.")],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what is in --out.")
    ] = False,
) -> None:
    """Compare two audits: two checkpoints of a model, two texts, two settings.

    Writes comparison.parquet, comparison.json and comparison.html (one file, opens
    offline; one a text where there are several). Audits whose heads do not answer to
    each other are refused; whatever else differs is said.
    """
    from largeprompt.audit import compare_audits, load_audit
    from largeprompt.audit.directory import check_directory, write_directory
    from largeprompt.report.comparison_page import comparison_page
    from largeprompt.report.comparison_words import summarise_change, told_differences

    comparison = compare_audits(load_audit(a), load_audit(b))
    texts = comparison.texts
    names = [
        "comparison.html" if len(texts) == 1 else f"comparison-{number}.html"
        for number in range(1, len(texts) + 1)
    ]
    files = comparison.files()
    check_directory(out, [*names, *files], overwrite=overwrite)
    pages = {
        name: comparison_page(comparison.only(text)).encode()
        for name, text in zip(names, texts, strict=True)
    }
    write_directory(out, pages | files, overwrite=overwrite)
    for name, first, second in told_differences(comparison):
        typer.echo(f"differs: {name}: {first} | {second}")
    for name, text in zip(names, texts, strict=True):
        summary = summarise_change(comparison.only(text))
        if len(texts) > 1:
            typer.echo(f"{text}:")
        for line in (*summary.headline, *summary.findings):
            typer.echo(line)
        typer.echo(f"page: {out / name}")
