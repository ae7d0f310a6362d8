"""`largeprompt ablate`: heads replaced by their linear limit, end to end."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from largeprompt.cli.arguments import wrong_arguments
from largeprompt.cli.options import Model, Out, Text, Tokens

if TYPE_CHECKING:
    from largeprompt.hf.ablation import Ablation
    from largeprompt.hf.ablation_result import AblationResult


def ablate(
    model: Model,
    out: Out,
    heads: Annotated[
        list[str] | None,
        typer.Option(
            help="Heads to replace together, may be repeated: linear-ones (by the "
            "audit's verdict), kept-ones (linear beside exact first and recent "
            "tokens), all, random:K, or LAYER.HEAD between commas. [default: "
            "linear-ones]"
        ),
    ] = None,
    text: Text = "prose",
    tokens: Tokens = 1024,
    keep_sinks: Annotated[int, typer.Option(help="First tokens that stay exact.")] = 4,
    keep_window: Annotated[
        int, typer.Option(help="Most recent tokens that stay exact.")
    ] = 64,
    bulk: Annotated[
        str,
        typer.Option(
            help="How the rest answers: finite (the exact law of as many Gaussian "
            "tokens) or limit (infinitely many, taken literally)."
        ),
    ] = "finite",
    curve: Annotated[
        bool,
        typer.Option(
            "--curve",
            help="Also 0, 1, 2, 4, ... and all heads, the most linear first and by "
            "chance, with a figure.",
        ),
    ] = False,
    eps: Annotated[
        float, typer.Option(help="Relative error at which a head counts as linear.")
    ] = 0.1,
    seed: Annotated[
        int, typer.Option(min=0, help="Where random heads are drawn from.")
    ] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an ablation already there.")
    ] = False,
) -> None:
    """Replace the attention of chosen heads and say what the model then predicts.

    Writes ablation.parquet (a row for each set of heads), summary.json, manifest.json
    and, with --curve, ablation.svg and ablation.html: all of them or none. An
    interrupted run goes on from the sets that it has finished.
    """
    # torch and transformers take seconds to import
    from largeprompt.cli.ablation_files import check_free, in_words, write
    from largeprompt.hf.ablation import Ablation
    from largeprompt.hf.ablation_limit import Replacement
    from largeprompt.hf.ablation_mass import Bulk

    with wrong_arguments():
        if bulk not in list(Bulk):
            raise ValueError(f"bulk must be {' or '.join(Bulk)}; got {bulk!r}")
        ablation = Ablation(
            tokens=tokens,
            heads=tuple(heads) if heads else (() if curve else ("linear-ones",)),
            curve=curve,
            replacement=Replacement(keep_sinks, keep_window, Bulk(bulk)),
            eps=eps,
            seed=seed,
        )
    check_free(out, overwrite=overwrite)
    result = _measured(model, text, ablation, out)
    write(result, out, overwrite=overwrite)
    typer.echo(in_words(result, out))


def _measured(
    name: str, text: str, ablation: "Ablation", out: Path
) -> "AblationResult":
    """Load the model and replace its heads under a progress bar."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    from largeprompt.cli.ablation_files import kept_parts
    from largeprompt.hf import load_model, load_text
    from largeprompt.hf.ablation import ablate_model, check_fits

    console = Console(stderr=True)
    reading = load_text(text)
    with console.status(f"loading {name}"):
        loaded = load_model(name)
    with wrong_arguments():
        check_fits(loaded.model, ablation)
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as bars:
        task = bars.add_task("sets of heads", total=None)
        return ablate_model(
            loaded.model,
            loaded.tokenizer,
            reading,
            ablation,
            progress=lambda done, total: bars.update(task, completed=done, total=total),
            description=loaded.description,
            resume_in=kept_parts(out),
        )
