"""`largeprompt status`: where a sweep stands, from what is saved."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from largeprompt.experiments.sweep import Status


def status(
    directory: Annotated[Path, typer.Argument(help="Directory of a sweep.")],
    cells: Annotated[
        bool, typer.Option("--cells", help="Print every cell with its state.")
    ] = False,
) -> None:
    """Say how many cells are done, running, failed and waiting, and why some failed."""
    from largeprompt.experiments.sweep import read_status

    found = read_status(directory)
    for line in _summary(found):
        typer.echo(line)
    if cells:
        for identity, state in found.states.items():
            label = found.sweep.label(found.sweep.cells[identity])
            typer.echo(f"{state.value:<8} {identity}  {label}")


def _summary(found: "Status") -> list[str]:
    from largeprompt.experiments.sweep import State

    states = (State.DONE, State.RUNNING, State.FAILED, State.WAITING)
    told = ", ".join(f"{found.count(state):,} {state.value}" for state in states)
    lines = [
        f"{len(found.states):,} cells of {found.sweep.experiment}: {told}",
        f"begun {found.starts:,} times, {found.reruns:,} of them again",
    ]
    if found.seconds is not None:
        lines.append(f"a cell takes {found.seconds:.3g} s (median)")
    lines += [f"runner: {runner}" for runner in found.runners]
    lines += [
        f"failed: {found.sweep.label(found.sweep.cells[identity])}: {last}"
        for identity, last in found.failures.items()
    ]
    return [*lines, *_about_code(found)]


def _about_code(found: "Status") -> list[str]:
    """Say what a change of the code means for this sweep."""
    from largeprompt.experiments.sweep.catalogue import module_of
    from largeprompt.experiments.sweep.version import code_version

    lines = []
    if found.other_code:
        lines.append(
            f"{found.other_code:,} cells not done by code {found.sweep.code} were done "
            "by other code; those results are kept, and not used"
        )
    here = code_version(module_of(found.sweep.experiment))
    if here != found.sweep.code:
        lines.append(
            f"the code is {here} now, the last run was of {found.sweep.code}: a new "
            "run computes every cell that this code has not done"
        )
    return lines
