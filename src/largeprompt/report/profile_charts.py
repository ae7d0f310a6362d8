"""The charts of a head's curves: measured, and by the law of Gaussian tokens."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from largeprompt.audit.profiles import PROFILES, Profile
from largeprompt.report.curves import DASHED, SOLID
from largeprompt.report.head_map import Width
from largeprompt.report.metrics import log_ticks
from largeprompt.report.palette import Palette
from largeprompt.report.profile_data import Curve

CURVES = alt.NamedData(name="curves")
"""The curves of the chosen head; whoever renders a chart supplies them."""

LEAST = 1e-7
"""What is smaller than this is left out where an axis is logarithmic."""

DECADES = [10.0**power for power in range(-7, 13)]


def profile_charts(
    curves: Sequence[Curve], palette: Palette, width: Width
) -> dict[str, alt.LayerChart]:
    """Return a chart for each kind of curve that some head has.

    Shares and correlations have one axis for all heads, so that heads are compared by
    eye; quantities with a size of their own have an axis for each head.
    """
    found = {}
    for profile in PROFILES:
        mine = [curve for curve in curves if curve["profile"] == profile.name]
        if mine:
            found[profile.name] = _chart(profile, mine, palette, width)
    return found


def _chart(
    profile: Profile, curves: Sequence[Curve], palette: Palette, width: Width
) -> alt.LayerChart:
    """Draw a kind of curve for the chosen head."""
    log_x, log_y = profile.x_scale == "log", profile.y_scale == "log"
    along = _numbers(curves, ("x",), log_x)
    upright = _numbers(curves, ("measured", "law"), log_y)
    small = {"titleFontSize": 11, "labelOverlap": True}
    x = alt.X("x:Q", title=profile.x).axis(grid=False, tickCount=6, **small)
    if log_x:
        low, high = along[0], max(along[-1], 2 * along[0])
        x = x.scale(type="log", domain=[low, high], nice=False)
        x = x.axis(grid=False, values=log_ticks(low, high), format="~s", **small)
    else:
        x = x.scale(zero=False, nice=False)
    y = alt.Y("y:Q", title=profile.y).scale(**_upright(upright, log=log_y))
    y = y.axis(format="~r", tickCount=5, **small)
    shown = "isValid(datum.y)"
    if log_y:
        y = y.axis(values=DECADES, format="~g", **small)
        shown += f" && datum.y >= {LEAST}"
    lines = (
        alt.Chart(CURVES)
        .transform_filter(f"datum.profile === '{profile.name}'")
        .transform_fold(["law", "measured"], as_=["series", "y"])
        .transform_filter(shown + (" && datum.x > 0" if log_x else ""))
        .transform_calculate(
            told=f"datum.series === 'law' ? '{profile.beside}' : 'measured'"
        )
        .encode(
            x=x,
            y=y,
            color=alt.Color("series:N", legend=None).scale(
                domain=["law", "measured"], range=[palette.muted, palette.in_sample]
            ),
            strokeDash=alt.StrokeDash("series:N", legend=None).scale(
                domain=["law", "measured"], range=[DASHED, SOLID]
            ),
            tooltip=[
                alt.Tooltip("told:N", title="series"),
                alt.Tooltip("x:Q", title=profile.x, format=".3~r"),
                alt.Tooltip("y:Q", title=profile.y, format=".3~r"),
            ],
        )
    )
    points = lines.transform_filter("datum.series === 'measured'")
    layers = [
        lines.mark_line(strokeWidth=1.75),
        points.mark_point(filled=True, size=22, opacity=1),
    ]
    return alt.LayerChart(layer=layers).properties(width=width, height=180)


def _numbers(
    curves: Sequence[Curve], columns: Sequence[str], positive: bool
) -> list[float]:
    """Return all numbers of some columns, ascending; never none."""
    found = [
        value
        for curve in curves
        for column in columns
        for value in curve[column] or ()
        if value is not None and (value > 0 or not positive)
    ]
    return sorted(found) or [1.0, 2.0]


def _upright(values: Sequence[float], *, log: bool) -> dict[str, Any]:
    """Return the scale upwards: fixed where every head's numbers lie in [-1, 1]."""
    scale: dict[str, Any] = {"type": "log"} if log else {"zero": False}
    if not -1.001 <= values[0] <= values[-1] <= 1.001:
        return scale
    if log:
        return {**scale, "domain": [max(values[0], LEAST), 1]}
    return {"domain": [min(0.0, values[0]), 1]}
