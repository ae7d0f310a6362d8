"""`largeprompt audit`: what softmax attention does in every head of a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from largeprompt.cli.arguments import read_lengths, wrong_arguments
from largeprompt.cli.audit_arguments import limited, read_numbers
from largeprompt.errors import ResultError

if TYPE_CHECKING:
    from largeprompt.audit import AuditResult

GIBI = 2**30
SUFFIXES = (".png", ".svg", ".pdf")
UNFINISHED = "unfinished"  # in the output directory: layers done so far


def audit(
    model: Annotated[
        str,
        typer.Argument(
            help="smollm2 (embedded), gemma3, minilm, a folder, a GGUF file, a hub id; "
            "or a .safetensors file of arrays q, k, v or q0, k0, v0, ..."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Directory for the result.")],
    text: Annotated[
        list[str] | None,
        typer.Option(
            help="prose (the default), code, or a text file in UTF-8; may be repeated."
        ),
    ] = None,
    lengths: Annotated[
        str, typer.Option(help="Prompt lengths in tokens, between commas.")
    ] = "256,512,1024,2048",
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Leave out lengths above this many tokens."),
    ] = None,
    layers: Annotated[
        str | None, typer.Option(help="Layers such as 0,3-5; every one by default.")
    ] = None,
    heads: Annotated[
        str | None,
        typer.Option(help="Heads of each layer such as 0,3-5; every one by default."),
    ] = None,
    queries: Annotated[
        int, typer.Option(min=1, help="Query positions measured at each length.")
    ] = 32,
    eps: Annotated[
        float, typer.Option(help="Relative error that a head must meet.")
    ] = 0.1,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Draw the query positions; the last ones by default."),
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="float32, bfloat16, float16 or float64.")
    ] = "float32",
    device: Annotated[
        str | None, typer.Option(help="Where the model runs: cpu, cuda, cuda:1, ...")
    ] = None,
    device_map: Annotated[
        str | None,
        typer.Option(help="How layers are spread over devices: auto, balanced, ..."),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(min=1, help="Arrays only: tokens in a sliding window."),
    ] = None,
    both_ways: Annotated[
        bool,
        typer.Option("--both-ways", help="Arrays only: tokens see later ones too."),
    ] = False,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Directory for figures: .png, .svg and .pdf, and the numbers as .csv."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an audit that is in --out.")
    ] = False,
) -> None:
    """Measure every attention head of a model and write a report.

    Writes heads.parquet, manifest.json and report.html (one file, opens offline; one a
    text where there are several). An interrupted audit goes on where it stopped when
    the same command is given again.
    """
    from largeprompt.audit import Question
    from largeprompt.audit.directory import write_directory
    from largeprompt.audit.files import check_writable
    from largeprompt.cli import audit_run

    with wrong_arguments():
        question = Question(
            sorted(set(limited(read_lengths(lengths), limit))),
            queries,
            eps,
            read_numbers(layers, "layers"),
            read_numbers(heads, "heads"),
            seed,
        )
    check_writable(out)
    if figures is not None:
        check_writable(figures)
    if not overwrite and (out / "manifest.json").exists():
        raise ResultError(
            f"{out} already holds an audit; add --overwrite to replace it"
        )
    if model.endswith(".safetensors"):
        result = audit_run.of_arrays(model, question, window, causal=not both_ways)
    else:
        with wrong_arguments():
            if window is not None or both_ways:
                raise ValueError("window and both-ways are for arrays; got a model")
            if device is not None and device_map is not None:
                raise ValueError("device or device-map must be given; got both")
        result = audit_run.of_model(
            model,
            text or ["prose"],
            question,
            dtype=dtype,
            device_map=device or device_map,
            unfinished=out / UNFINISHED,
            overwrite=overwrite,
        )
    pages = _pages(result)
    write_directory(out, pages | result.files(), overwrite=overwrite)
    audit_run.finish(out / UNFINISHED)
    _tell(result, [out / name for name in pages])
    if figures is not None:
        _draw(out, figures)


def _pages(result: "AuditResult") -> dict[str, bytes]:
    """Return a report for each text, by the name of its file."""
    from largeprompt.report.page import render_page

    several = len(result.texts) > 1
    return {
        f"report-{number}.html" if several else "report.html": render_page(
            result.only(text), result
        ).encode()
        for number, text in enumerate(result.texts, 1)
    }


def _draw(out: Path, figures: Path) -> None:
    """Draw the figures of the audit that was saved, and say which there are."""
    from largeprompt.cli.saved_figures import drawn

    for path in drawn(out, figures, {}, SUFFIXES):
        typer.echo(path)


def _tell(result: "AuditResult", pages: list[Path]) -> None:
    """Print the summary of each text and where its report is."""
    from largeprompt.report.records import records
    from largeprompt.report.words import summarise

    for text, path in zip(result.texts, pages, strict=True):
        one = result.only(text)
        if len(result.texts) > 1:
            typer.echo(f"{text}:")
        summary = summarise(one, records(one), result)
        for line in (*summary.headline, *summary.findings, *summary.advice):
            typer.echo(line)
        typer.echo(f"report: {path}")
    seconds, peak = result.manifest["seconds"], result.manifest["peak_rss_bytes"]
    typer.echo(f"measured in {seconds:.0f} s, {peak / GIBI:.1f} GiB at the peak")
