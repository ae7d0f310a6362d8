"""`largeprompt depth`: how Gaussian a model's tokens are, layer by layer."""

from typing import Annotated

import typer

from largeprompt.cli.arguments import wrong_arguments
from largeprompt.cli.options import Model, Out, Text, Tokens


def depth(
    model: Model,
    out: Out,
    text: Text = "prose",
    tokens: Tokens = 1024,
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

    from largeprompt.audit.directory import check_directory, write_directory
    from largeprompt.hf import load_model, load_text
    from largeprompt.hf.token_law import token_laws
    from largeprompt.hf.token_law_result import FILES
    from largeprompt.report.depth_figure import depth_figure

    figures = {f"token_law{suffix}": suffix for suffix in (".svg", ".html")}
    check_directory(out, [*figures, *FILES], overwrite=overwrite)
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
