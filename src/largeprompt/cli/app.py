"""The application: its commands, and what a failure becomes.

Heavy imports live inside commands, so that `--help` and `plan` answer at once.
"""

import sys
from typing import Annotated

import typer

import largeprompt
from largeprompt.cli.ablate import ablate
from largeprompt.cli.audit import audit
from largeprompt.cli.compare import compare
from largeprompt.cli.compress_eval import compress_eval
from largeprompt.cli.concentration import concentration
from largeprompt.cli.depth import depth
from largeprompt.cli.figures import figures
from largeprompt.cli.plan import plan
from largeprompt.cli.reproduce import reproduce
from largeprompt.cli.status import status
from largeprompt.cli.sweep import sweep
from largeprompt.errors import LargePromptError

app = typer.Typer(
    name="largeprompt",
    help="Softmax attention over a long prompt: audit, plan, experiment.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(plan)
app.command()(audit)
app.command()(compare)
app.command()(ablate)
app.command()(compress_eval)
app.command()(depth)
app.command()(concentration)
app.command()(reproduce)
app.command()(sweep)
app.command()(status)
app.command()(figures)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"largeprompt {largeprompt.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """Softmax attention over a long prompt: audit, plan, experiment."""


def main() -> None:
    """Run the command line and exit with its status.

    Status 1 is a failure the user can act on, said in one line; 2 a wrong argument; 130
    an interruption.
    """
    try:
        app()
    except LargePromptError as error:
        typer.echo(f"largeprompt: {error}", err=True)
        sys.exit(1)
