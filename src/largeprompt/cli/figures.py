"""`largeprompt figures`: redraw what was measured from what was saved."""

from pathlib import Path
from typing import Annotated

import typer

from largeprompt.cli.arguments import wrong_arguments


def figures(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Directory of a sweep, concentration, audit or comparison."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Where to; the directory itself if left out.")
    ] = None,
    x: Annotated[str | None, typer.Option(help="Column along the axis.")] = None,
    y: Annotated[str | None, typer.Option(help="Column that is measured.")] = None,
    colour: Annotated[
        str | None, typer.Option(help="Column that tells lines apart.")
    ] = None,
    panel: Annotated[
        str | None, typer.Option(help="Column with a panel a value; none for one.")
    ] = None,
    suffix: Annotated[
        list[str] | None, typer.Option(help="svg, png, pdf or html; may be repeated.")
    ] = None,
) -> None:
    """Draw the figures of a directory of results anew; nothing is computed again.

    Of a sweep the figure is what its experiment says, unless columns are named; points
    are means over everything that is no column of the figure, bars their range. Beside
    each figure of an audit or a comparison its numbers are written as a .csv file.
    """
    from largeprompt.audit.files import check_writable
    from largeprompt.cli.saved_figures import drawn

    columns = {"x": x, "y": y, "colour": colour, "panel": panel}
    suffixes = [f".{each.removeprefix('.')}" for each in suffix or ["svg", "png"]]
    check_writable(out or directory)
    with wrong_arguments():
        for path in drawn(directory, out or directory, columns, suffixes):
            typer.echo(path)
