"""`largeprompt plan`: two of length, error and logit variance give the third."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from largeprompt.cli.arguments import wrong_arguments
from largeprompt.cli.plan_answer import curves_of, one_query, plain, solved
from largeprompt.cli.plan_words import in_words
from largeprompt.cli.spectrum import read_spectrum
from largeprompt.laws.outlook import correlate, extend, prove


def plan(
    n: Annotated[
        int | None, typer.Option(help="Prompt length in tokens, 1 to 10^15.")
    ] = None,
    eps: Annotated[
        float | None,
        typer.Option(help="Root-mean-square error of the output relative to a value."),
    ] = None,
    logit_variance: Annotated[
        float | None, typer.Option(help="Variance of the head's logits, 0 to 400.")
    ] = None,
    dim: Annotated[
        int | None, typer.Option(help="Dimension of the values; 64 when left out.")
    ] = None,
    spectrum: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Spectrum of an anisotropic head in place of --dim. Text: an "
            "eigenvalue of V G V' a line, with its share of the logit variance or "
            "without. JSON: value_eigenvalues and perhaps shares; or, for a Gaussian "
            "query in place of --logit-variance, logit_eigenvalues, responses and "
            "variance.",
        ),
    ] = None,
    bound: Annotated[
        bool, typer.Option("--bound", help="Show what is proven beside the exact law.")
    ] = False,
    longer: Annotated[
        int | None,
        typer.Option(
            "--extend", help="Show the drift when the prompt grows to so many tokens."
        ),
    ] = None,
    correlation: Annotated[
        float | None,
        typer.Option(help="Tokens are an AR(1) sequence of this correlation."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw error against n: .svg, .png, .pdf or .html."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Solve for the one of --n, --eps and --logit-variance that is left out.

    The law is exact for independent Gaussian tokens at any length. A solved n is
    rounded up, and eps in the answer is the error achieved.
    """
    with wrong_arguments():
        head = None if spectrum is None else read_spectrum(spectrum)
        answer = solved(head, n, eps, logit_variance, dim)
        parts: dict[str, Any] = {}
        if bound:
            parts["bound"] = prove(one_query(answer), eps or answer.eps)
        if longer is not None:
            parts["extension"] = extend(one_query(answer), longer)
        if correlation is not None:
            parts["correlation"] = correlate(one_query(answer), correlation)
        if plot is not None:
            # charts take seconds to import
            from largeprompt.report.plan_figure import write_plan_figure

            write_plan_figure(curves_of(answer, head), answer, plot)
    if as_json:
        results = {name: plain(part) for name, part in parts.items()}
        typer.echo(json.dumps(plain(answer) | results, allow_nan=False))
    else:
        typer.echo("\n".join(in_words(part) for part in (answer, *parts.values())))
