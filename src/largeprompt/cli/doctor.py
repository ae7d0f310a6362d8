"""`largeprompt doctor`: what is installed here, and whether it computes aright."""

import platform
import time
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

import largeprompt
from largeprompt.cli.extras import SHOWN, packages_of

CORE = ("torch", "numpy", "scipy", "pyarrow", "safetensors", "altair")


def doctor(
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check", help="Compute known numbers, in some ten seconds."
        ),
    ] = True,
) -> None:
    """Say what is installed, which devices and models are here, and check itself.

    The exit status is 1 if a number comes out wrong.
    """
    typer.echo(
        f"largeprompt {largeprompt.__version__}, Python {platform.python_version()}, "
        f"{platform.platform()}"
    )
    typer.echo("packages  " + ", ".join(f"{name} {_version(name)}" for name in CORE))
    for extra in SHOWN:
        typer.echo(f"extra     {_extra(extra)}")
    from largeprompt.cli.doctor_checks import CHECKS, devices, models

    for line in devices():
        typer.echo(f"device    {line}")
    for line in models():
        typer.echo(f"model     {line}")
    failed = False
    for name, run in CHECKS.items() if check else ():
        started = time.perf_counter()
        finding = run()
        failed |= not finding.right
        typer.echo(
            f"check     {name}: {'right' if finding.right else 'WRONG'}, "
            f"{finding.told} ({time.perf_counter() - started:.1f} s)"
        )
    if failed:
        raise typer.Exit(1)


def _extra(extra: str) -> str:
    packages = packages_of(extra)
    lacking = [name for name in packages if _version(name) == "missing"]
    if lacking:
        told = f"{', '.join(lacking)} missing; pip install 'largeprompt[{extra}]'"
        return f"{extra}: {told}"
    return f"{extra}: " + ", ".join(f"{name} {_version(name)}" for name in packages)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
