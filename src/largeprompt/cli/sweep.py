"""`largeprompt sweep`: a grid of cells, finished whatever happens."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from largeprompt.cli.arguments import wrong_arguments

if TYPE_CHECKING:
    from largeprompt.experiments.sweep import Workers


def sweep(
    spec: Annotated[
        Path, typer.Argument(help="TOML file: experiment, [options] and [grid].")
    ],
    out: Annotated[
        Path, typer.Option(help="Directory of the sweep; found again, it is resumed.")
    ],
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Local processes; one for each processor if left out."
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option(min=1, help="Threads of a local process.")
    ] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            help="Address of a scheduler of dask.distributed, as in "
            "tcp://10.0.0.1:8786: its workers in place of local processes."
        ),
    ] = None,
    shard: Annotated[
        str, typer.Option(help="i/N: the i-th of N shares of the cells.")
    ] = "1/1",
    force: Annotated[
        bool, typer.Option("--force", help="Compute finished cells again.")
    ] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End at the first failure.")
    ] = False,
    only_list: Annotated[
        bool, typer.Option("--list", help="Print the cells and run none.")
    ] = False,
) -> None:
    """Run the cells of a specification that are not finished yet.

    The same command resumes a sweep that was interrupted, however it was. Failures are
    shown at once, the rest goes on, and the exit status is 1 in the end.
    """
    from largeprompt.cli.sweep_table import LiveStates, in_words, listed
    from largeprompt.experiments.sweep import (
        Demand,
        Shard,
        read_specification,
        run_sweep,
    )

    with wrong_arguments():
        share = Shard.read(shard)
        cells = read_specification(spec)
        if scheduler is not None and jobs is not None:
            raise ValueError("--jobs must be left out beside --scheduler")
    if only_list:
        typer.echo(listed(cells, out, share))
        return
    demand = Demand(force=force, fail_fast=fail_fast, shard=share)
    with LiveStates(cells, share) as live:
        workers = _workers(scheduler, jobs, threads)
        states = run_sweep(cells, out, workers, demand, live.watch)
    typer.echo(in_words(cells, out, states))
    if live.failed:
        raise typer.Exit(1)


def _workers(scheduler: str | None, jobs: int | None, threads: int) -> "Workers":
    from largeprompt.experiments.sweep import Cluster, Processes

    if scheduler is not None:
        return Cluster(scheduler)
    return Processes(jobs or os.cpu_count() or 1, threads)
