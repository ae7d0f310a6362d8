"""Arguments and options that several commands have, each with one meaning."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Model: TypeAlias = Annotated[
    str, typer.Argument(help="smollm2 (embedded), a folder, a GGUF file, or a hub id.")
]
Out: TypeAlias = Annotated[Path, typer.Option(help="Directory for the result.")]
Text: TypeAlias = Annotated[
    str, typer.Option(help="prose, code, speeches, or a text file in UTF-8.")
]
Tokens: TypeAlias = Annotated[int, typer.Option(help="Length of the text, in tokens.")]
