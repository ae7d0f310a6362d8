"""The figure of an ablation: loss against the number of heads that are linear."""

from typing import Any

import altair as alt

from largeprompt.hf.ablation_result import AblationResult
from largeprompt.report.palette import LIGHT
from largeprompt.report.rendering import rendered

ORDERS = {
    "audit": ("most linear first", LIGHT.linear),
    "random": ("in random order", LIGHT.held_out),
}
CHANGE = "change of loss (nats a token)"
WIDTH, HEIGHT = 460, 280


def ablation_figure(result: AblationResult, suffix: str) -> bytes:
    """Return the curve of an ablation as the content of a file.

    Args:
        result: An ablation with a curve.
        suffix: `.svg`, `.png`, `.pdf` or `.html`.

    Raises:
        ValueError: Another suffix.
    """
    about, kept = result.manifest, result.manifest["replacement"]
    return rendered(
        ablation_chart(result).to_dict(),
        "Heads replaced by their linear limit, together",
        f"{about['model']['name']} on {about['text']['name']}, "
        f"{about['text']['tokens']:,} tokens; {kept['sinks']} first and "
        f"{kept['window']} recent tokens exact, the rest by the "
        f"{kept['bulk']} law",
        suffix,
    )


def ablation_chart(result: AblationResult) -> alt.HConcatChart:
    """Return the change of the loss and the divergence, side by side."""
    rows = _rows(result)
    most = max(row["heads"] for row in rows)
    x = (
        alt.X("heads:Q", title="heads replaced")
        .scale(type="symlog", constant=1, domain=[0, most])
        .axis(values=sorted({row["heads"] for row in rows}), labelOverlap=True)
    )
    names, colours = zip(*ORDERS.values(), strict=True)
    legend = alt.Legend(title=None, orient="top", symbolType="stroke")
    plane = alt.Chart(alt.InlineData(values=rows)).encode(
        x=x,
        color=alt.Color("order:N", legend=legend).scale(domain=names, range=colours),
        tooltip=[
            "order:N",
            alt.Tooltip("heads:Q", title="heads replaced"),
            alt.Tooltip("change:Q", title="change of loss", format=".3~r"),
            alt.Tooltip("divergence:Q", format=".3~r"),
            alt.Tooltip("agreement:Q", title="same top token", format=".1%"),
        ],
    )
    change = alt.Y("change:Q", title=CHANGE).scale(type="symlog", constant=0.01)
    bars = plane.mark_rule(strokeWidth=1.5).encode(
        y=alt.Y("low:Q", title=CHANGE).scale(type="symlog", constant=0.01),
        y2="high:Q",
    )
    divergence = alt.Y("divergence:Q", title="divergence from the intact model (nats)")
    divergence = divergence.scale(type="log").axis(format=",~r", tickCount=5)
    left = alt.LayerChart(layer=[bars, *_marks(plane, change)])
    some = plane.transform_filter("datum.divergence > 0")  # on a logarithmic axis
    right = alt.LayerChart(layer=_marks(some, divergence))
    return alt.HConcatChart(
        hconcat=[part.properties(width=WIDTH, height=HEIGHT) for part in (left, right)]
    )


def _marks(plane: alt.Chart, y: alt.Y) -> list[alt.Chart]:
    line = plane.mark_line(strokeWidth=2, clip=True).encode(y=y)
    return [line, plane.mark_point(filled=True, size=45, opacity=1).encode(y=y)]


def _rows(result: AblationResult) -> list[dict[str, Any]]:
    """Return the points of the curves; bars of two standard errors either way."""
    return [
        {
            "order": ORDERS[row["order"]][0],
            "heads": row["heads_replaced"],
            "change": row["loss_change"],
            "low": row["loss_change"] - 2 * row["loss_change_error"],
            "high": row["loss_change"] + 2 * row["loss_change_error"],
            "divergence": row["kl"],
            "agreement": row["top1_agreement"],
        }
        for row in result.rows
        if row["order"] in ORDERS
    ]
