"""The application: its commands, and what a failure becomes.

Heavy imports live inside commands, so that `--help` and `plan` answer at once.
"""

import io
import sys
from typing import Annotated, NoReturn

import typer

import largeprompt
from largeprompt.cli.ablate import ablate
from largeprompt.cli.arguments import printable
from largeprompt.cli.audit import audit
from largeprompt.cli.compare import compare
from largeprompt.cli.compress_eval import compress_eval
from largeprompt.cli.concentration import concentration
from largeprompt.cli.depth import depth
from largeprompt.cli.doctor import doctor
from largeprompt.cli.extras import extra_of
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
app.command()(doctor)


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


def run() -> None:
    """Run a command; what the world outside refuses becomes one line and status 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # names of files may hold bytes that are no text, and terminals no ε
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except LargePromptError as error:
        _fail(str(error))
    except OSError as error:
        about = f"{error.filename}: " if error.filename else ""
        _fail(f"{about}{error.strerror or error}")
    except MemoryError:
        _fail("out of memory: ask for less at a time")
    except ModuleNotFoundError as error:
        extra = extra_of(error.name or "")
        if extra is None:
            raise
        _fail(f"{error.name} is not installed; pip install 'largeprompt[{extra}]'")


def _fail(reason: str) -> NoReturn:
    typer.echo(f"largeprompt: {printable(reason)}", err=True)
    sys.exit(1)
