"""`largeprompt depth`: how Gaussian a model's tokens are, layer by layer."""

from pathlib import Path
from typing import Annotated

import typer

from largeprompt.cli.arguments import wrong_arguments


def depth(
    model: Annotated[
        str,
        typer.Argument(help="smollm2 (embedded), a folder, a GGUF file, or a hub id."),
    ],
    out: Annotated[Path, typer.Option(help="Directory for the result.")],
    text: Annotated[
        str, typer.Option(help="prose, code, or a text file in UTF-8.")
    ] = "prose",
    tokens: Annotated[int, typer.Option(help="Length of the text, in tokens.")] = 1024,
    directions: Annotated[
        int, typer.Option(help="Random directions that laws are projected on.")
    ] = 64,
    seed: Annotated[
        int, typer.Option(min=0, help="Where directions are drawn from.")
    ] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a result already there.")
    ] = False,
) -> None:
    """Compare hidden states and keys of every layer with Gaussians of their moments.

    Writes token_law.parquet, manifest.json, token_law.svg and token_law.html: all of
    them or none.
    """
    # torch and transformers take seconds to import
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress

    from largeprompt.audit.files import check_writable
    from largeprompt.experiments.directory import check_directory, write_directory
    from largeprompt.hf import load_model, load_text
    from largeprompt.hf.token_law import token_laws
    from largeprompt.hf.token_law_result import FILES
    from largeprompt.report.depth_figure import depth_figure

    figures = {f"token_law{suffix}": suffix for suffix in (".svg", ".html")}
    check_directory(out, [*figures, *FILES], overwrite=overwrite)
    check_writable(out)
    console = Console(stderr=True)
    reading = load_text(text)
    with console.status(f"loading {model}"):
        loaded = load_model(model)
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn())
    with wrong_arguments(), Progress(*columns, console=console) as bars:
        task = bars.add_task("layers", total=None)
        result = token_laws(
            loaded.model,
            loaded.tokenizer,
            reading,
            tokens,
            directions=directions,
            seed=seed,
            progress=lambda done, total: bars.update(task, completed=done, total=total),
            description=loaded.description,
        )
    drawn = {name: depth_figure(result, suffix) for name, suffix in figures.items()}
    write_directory(out, drawn | result.files(), overwrite=overwrite)
    typer.echo(f"figure: {out / 'token_law.html'}")
