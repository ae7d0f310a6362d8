"""The figure of a model's token laws: distance to a Gaussian, layer by layer."""

import statistics
from typing import Any

import altair as alt

from largeprompt.hf.token_law_result import TokenLawResult
from largeprompt.report.palette import LIGHT
from largeprompt.report.rendering import rendered

SERIES = {
    "hidden states": LIGHT.linear,
    "keys": LIGHT.held_out,
}
GAUSSIAN = "as many Gaussian tokens"
MEASURED = "the model's tokens"
WIDTH, HEIGHT = 430, 260


def depth_figure(result: TokenLawResult, suffix: str) -> bytes:
    """Return the distances of every layer as the content of a file.

    Args:
        result: The token laws of a model.
        suffix: `.svg`, `.png`, `.pdf` or `.html`.

    Raises:
        ValueError: Another suffix.
    """
    about = result.manifest
    return rendered(
        depth_chart(result).to_dict(),
        "How far tokens are from a Gaussian of their own moments",
        f"{about['model']['name']} on {about['text']['name']}, "
        f"{about['text']['tokens']:,} tokens; means over "
        f"{about['arguments']['directions']} random directions, and over key heads",
        suffix,
    )


def depth_chart(result: TokenLawResult) -> alt.HConcatChart:
    """Return the Kolmogorov distance and the excess kurtosis, side by side."""
    rows = _rows(result)
    legend = alt.Legend(
        title=None,
        orient="top",
        symbolType="stroke",
        symbolStrokeColor=LIGHT.ink,
        labelLimit=220,
    )
    coloured = alt.Legend(title=None, orient="top", symbolType="stroke")
    plane = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("layer:Q", title="layer").axis(tickMinStep=1, format="d"),
        color=alt.Color("what:N", legend=coloured).scale(
            domain=list(SERIES), range=list(SERIES.values())
        ),
        strokeDash=alt.StrokeDash("law:N", legend=legend).scale(
            domain=[MEASURED, GAUSSIAN], range=[[1, 0], [4, 4]]
        ),
        tooltip=[
            "what:N",
            "law:N",
            "layer:Q",
            alt.Tooltip("kolmogorov:Q", format=".3~r"),
            alt.Tooltip("wasserstein:Q", format=".3~r"),
            alt.Tooltip("kurtosis:Q", format=".3~r"),
        ],
    )
    distance = alt.Y("kolmogorov:Q", title="Kolmogorov distance to the normal law")
    tails = alt.Y("kurtosis:Q", title="excess kurtosis").scale(
        type="symlog", constant=1
    )
    panels = [
        plane.mark_line(strokeWidth=2, point={"size": 28})
        .encode(y=y)
        .properties(width=WIDTH, height=HEIGHT)
        for y in (distance, tails)
    ]
    return alt.HConcatChart(hconcat=panels)


def _rows(result: TokenLawResult) -> list[dict[str, Any]]:
    """Return a point for each layer, kind of token and law; means over key heads."""
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in result.table.to_pylist():
        groups.setdefault((row["what"], row["layer"]), []).append(row)
    return [
        {
            "what": what,
            "layer": layer,
            "law": law,
            **{
                name: statistics.fmean(row[f"{name}{ending}"] for row in group)
                for name in ("kolmogorov", "wasserstein", "kurtosis")
            },
        }
        for (what, layer), group in groups.items()
        for law, ending in ((MEASURED, ""), (GAUSSIAN, "_gaussian"))
    ]
