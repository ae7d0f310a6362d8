"""`largeprompt concentration`: measure how fast finite prompts reach their limit."""

import time
from pathlib import Path
from typing import Annotated

import typer

from largeprompt.cli.arguments import wrong_arguments


def concentration(
    out: Annotated[Path, typer.Option(help="Directory to write to.")],
    preset: Annotated[
        str,
        typer.Option(
            help="Settings that the other options change. published: d = 4, U of norm "
            "0.22, V of norm 0.75, lengths 16 to 1,024, three covariances, 8 seeds."
        ),
    ] = "published",
    law: Annotated[
        list[str] | None,
        typer.Option(
            help="Token law, may be repeated: gaussian, decaying (covariance "
            "0.5^|i-j|), condition-8, rademacher, cube, sphere, laplace."
        ),
    ] = None,
    head: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Safetensors file with key, query, value and scale: one head in "
            "place of random ones.",
        ),
    ] = None,
    dim: Annotated[int | None, typer.Option(help="Dimension of random heads.")] = None,
    bilinear_norm: Annotated[
        float | None, typer.Option(help="Operator norm of U of random heads.")
    ] = None,
    value_norm: Annotated[
        float | None, typer.Option(help="Operator norm of V of random heads.")
    ] = None,
    lengths: Annotated[
        str | None, typer.Option(help="Prompt lengths, as in 16,32,64.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Independent repetitions, a head each.")
    ] = None,
    queries: Annotated[int | None, typer.Option(help="Queries of a seed.")] = None,
    prompts: Annotated[
        int | None, typer.Option(help="Prompts of a query at each length.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The number that all draws follow from.")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="Of the intervals of slopes.")
    ] = None,
    bounds: Annotated[
        bool | None, typer.Option("--bounds/--no-bounds", help="Compute proven bounds.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace results already there.")
    ] = False,
) -> None:
    """Draw prompts, and fit how fast output and gradients approach their limits.

    Writes concentration.parquet, slopes.json, manifest.json and the figure as
    concentration.svg and concentration.png: all of them or none. The interval of a
    slope is Student's t over the seeds.
    """
    # torch and the charts take seconds to import
    from rich.console import Console
    from rich.progress import track

    from largeprompt.cli.concentration_arguments import experiment_from
    from largeprompt.cli.concentration_files import check_free, in_words, write
    from largeprompt.experiments import ConcentrationResult, measure_cells

    started = time.perf_counter()
    with wrong_arguments():
        experiment = experiment_from(
            preset,
            laws=law,
            head=head,
            random_head={
                "dim": dim,
                "bilinear_norm": bilinear_norm,
                "value_norm": value_norm,
            },
            lengths=lengths,
            numbers={
                "seeds": seeds,
                "queries": queries,
                "prompts": prompts,
                "seed": seed,
                "confidence": confidence,
                "bounds": bounds,
            },
        )
        check_free(out, overwrite=overwrite)
        groups = track(
            measure_cells(experiment),
            description="laws and seeds",
            total=len(experiment.laws) * experiment.seeds,
            console=Console(stderr=True),
            transient=True,
        )
        cells = [cell for group in groups for cell in group]
        result = ConcentrationResult.of(experiment, cells, started)
    write(result, out, overwrite=overwrite)
    typer.echo(in_words(result, out))
