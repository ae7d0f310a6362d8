"""`largeprompt compress-eval`: what compressing prompts costs, by every method."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from largeprompt.cli.arguments import wrong_arguments
from largeprompt.cli.compress_eval_arguments import read_names, read_shares
from largeprompt.cli.compress_eval_files import cells_beside, check_free, write
from largeprompt.cli.options import Model, Out

if TYPE_CHECKING:
    from largeprompt.hf.evaluation_plan import EvaluationPlan
    from largeprompt.hf.evaluation_result import CompressionResult


def compress_eval(
    model: Model,
    out: Out,
    text: Annotated[
        list[str] | None,
        typer.Option(help="prose, code, or a text file in UTF-8; may be repeated."),
    ] = None,
    budgets: Annotated[
        str, typer.Option(help="Shares of the cache's bytes, between commas.")
    ] = "0.05,0.1",
    methods: Annotated[
        str | None, typer.Option(help="Methods, between commas; all by default.")
    ] = None,
    prompt_tokens: Annotated[
        int, typer.Option(help="Tokens of the prompt that is compressed.")
    ] = 7680,
    continuation: Annotated[
        int, typer.Option(help="Tokens that follow it, seen by no method.")
    ] = 512,
    queries: Annotated[
        int, typer.Option(help="Last queries of the prompt to calibrate on.")
    ] = 256,
    passkey_depths: Annotated[
        str | None,
        typer.Option(help="Where to hide a pass key, from 0 to 1, between commas."),
    ] = None,
    prefill_peak: Annotated[
        bool,
        typer.Option("--prefill-peak", help="Measure memory while reading, too."),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace an evaluation in --out."),
    ] = False,
) -> None:
    """Compress prompts in every way and compare each with the exact cache.

    Writes errors.parquet, summary.json, passkeys.json, manifest.json and report.html:
    all of them or none. An interrupted run goes on from the cells that it has finished.
    """
    from largeprompt.hf.evaluation_methods import METHODS, chosen_methods
    from largeprompt.hf.evaluation_plan import EvaluationPlan

    with wrong_arguments():
        plan = EvaluationPlan(
            methods=chosen_methods(read_names(methods) if methods else list(METHODS)),
            budgets=read_shares(budgets, "budgets"),
            prompt_tokens=prompt_tokens,
            continuation=continuation,
            queries=queries,
            passkey_depths=read_shares(passkey_depths or "", "depths"),
            prefill_peak=prefill_peak,
        )
    check_free(out, overwrite=overwrite)
    result = _evaluated(model, text or ["prose"], plan, out)
    write(result, out, overwrite=overwrite)
    for row in result.summary:
        typer.echo(_line(row))
    typer.echo(f"report: {out / 'report.html'}")


def _evaluated(
    model: str, texts: list[str], plan: "EvaluationPlan", out: Path
) -> "CompressionResult":
    """Load the model and evaluate it under a progress bar."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

    from largeprompt.hf import load_model, load_text
    from largeprompt.hf.evaluation import evaluate_compression
    from largeprompt.hf.evaluation_store import CellStore

    console = Console(stderr=True)
    readings = [load_text(name) for name in texts]
    with console.status(f"loading {model}"):
        loaded = load_model(model)
    with wrong_arguments():
        plan.check_context(
            loaded.model.config.get_text_config().max_position_embeddings
        )
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as bars:
        task = bars.add_task("reading", total=None)
        return evaluate_compression(
            loaded.model,
            loaded.tokenizer,
            readings,
            plan,
            loaded.description,
            store=CellStore(cells_beside(out)),
            progress=lambda what, done, total: bars.update(
                task, description=what, completed=done, total=total
            ),
        )


def _line(row: dict) -> str:
    """Return a row of the summary as a line of text."""
    start = f"{row['text']} {row['method']} {row['budget']:.3g}:"
    error = f"head error {row['mean_error']:.4f}"
    if row["kl"] is None:
        return f"{start} {error}"
    return (
        f"{start} {error}, KL {row['kl']:.4f}, top-1 {row['top1']:.3f}, "
        f"NLL {row['nll']:.4f}, {row['bytes'] / 2**20:.1f} MiB"
    )
