"""The colours of the report, in light and in dark, named by what they mean."""

import dataclasses
from typing import Any, final

import altair as alt

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.split(".")[:2])
"""The version of Vega-Lite that the charts are written in, as vl_convert names it."""

SANS = "system-ui, 'Segoe UI', 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"


@final
@dataclasses.dataclass(frozen=True)
class Palette:
    """One colour for each role; told apart without hue, too, by their lightness."""

    paper: str
    card: str
    ink: str
    muted: str
    line: str
    void: str
    linear: str
    heavy_tailed: str
    frozen: str
    in_sample: str
    kept: str
    held_out: str


LIGHT = Palette(
    paper="#faf9f6",
    card="#ffffff",
    ink="#1f262b",
    muted="#5d676e",
    line="#dedbd3",
    void="#e9e6df",
    linear="#23809c",
    heavy_tailed="#a66a00",
    frozen="#8d3a66",
    in_sample="#0068a6",
    kept="#008a64",
    held_out="#c75000",
)

DARK = Palette(
    paper="#15191c",
    card="#1c2226",
    ink="#e8e5de",
    muted="#9ba6ac",
    line="#313a40",
    void="#2a3136",
    linear="#5cb8d4",
    heavy_tailed="#e2ac45",
    frozen="#d884b0",
    in_sample="#5aaeea",
    kept="#3fc79c",
    held_out="#ff9150",
)

NAMES = tuple(field.name for field in dataclasses.fields(Palette))

# Charts of the page name their colours as CSS variables, so that the style sheet alone
# decides: light, dark or print.
PAGE = Palette(**{name: f"var(--{name})" for name in NAMES})


def css_variables(palette: Palette) -> str:
    """Return the palette as declarations of CSS custom properties."""
    return "".join(f"--{name}:{getattr(palette, name)};" for name in NAMES)


def chart_config(palette: Palette) -> dict[str, Any]:
    """Return the Vega-Lite configuration that all charts share."""
    labels = {"labelColor": palette.muted, "titleColor": palette.ink}
    type_ = {"labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": 500}
    return {
        "font": SANS,
        "background": "transparent",
        "view": {"stroke": None},
        "aria": False,
        "axis": {
            **labels,
            **type_,
            "titlePadding": 8,
            "domainColor": palette.line,
            "tickColor": palette.line,
            "gridColor": palette.line,
            "gridOpacity": 0.7,
        },
        "legend": {**labels, **type_, "symbolStrokeWidth": 2.5, "symbolSize": 180},
    }


def dressed(chart: alt.LayerChart, palette: Palette) -> dict[str, Any]:
    """Return the specification of a chart in the colours of a palette."""
    return {**chart.to_dict(), "config": chart_config(palette)}
