"""The figure of a concentration experiment."""

import re
import time

import pytest

from largeprompt.experiments import (
    Concentration,
    ConcentrationResult,
    RandomHeads,
    TokenLaw,
    measure_cells,
)
from largeprompt.report.concentration_figure import COLOURS, concentration_figure
from tests.report.browser import inked_share


@pytest.fixture(scope="module")
def result() -> ConcentrationResult:
    experiment = Concentration(
        laws=(TokenLaw.GAUSSIAN, TokenLaw.CUBE),
        lengths=(20, 60, 300),
        seeds=2,
        queries=2,
        prompts=3,
        heads=RandomHeads(dim=3, bilinear_norm=0.2, value_norm=0.75),
    )
    cells = [cell for group in measure_cells(experiment) for cell in group]
    return ConcentrationResult.of(experiment, cells, time.perf_counter())


def test_figure_has_a_panel_for_each_law_with_its_slopes(result):
    drawn = concentration_figure(result, ".svg").decode()
    for law in ("gaussian", "cube"):
        assert f">{law}</text>" in drawn
    for slope in result.slopes:
        assert f"{slope.quantity} {slope.slope:.3f}" in drawn
    for line in ("exact law", "proven bound", "long-run rate", "over 2 seeds"):
        assert line in drawn


def test_figure_has_a_point_for_each_law_quantity_and_length(result):
    drawn = concentration_figure(result, ".svg").decode()
    for colour in COLOURS.values():
        points = re.findall(rf'aria-roledescription="point"|fill="{colour}"', drawn)
        assert len(points) >= 2 * 3


def test_figure_is_not_blank(result):
    assert inked_share(concentration_figure(result, ".png")) > 0.01


def test_figure_of_another_suffix_is_refused(result):
    with pytest.raises(ValueError, match=r"a figure must be a .* file; got '.gif'"):
        concentration_figure(result, ".gif")
