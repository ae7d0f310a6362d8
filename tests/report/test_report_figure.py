"""Figures as files, for papers and READMEs."""

import re

import pytest
import vl_convert

from largeprompt.report import Figure, write_figure
from largeprompt.report.curves import error_curves, ess_curve
from largeprompt.report.head_map import head_map
from largeprompt.report.metrics import METRICS, log_ticks
from largeprompt.report.palette import LIGHT, VEGA_LITE, dressed
from largeprompt.report.phase_map import phase_map
from largeprompt.report.records import records
from tests.report.browser import inked_share
from tests.report.synthetic import synthetic_audit

SMALL = synthetic_audit(7, 3, (100, 300, 1000))


@pytest.mark.parametrize("kind", list(Figure))
@pytest.mark.parametrize(
    ("suffix", "magic"), [(".png", b"\x89PNG"), (".svg", b"<svg"), (".pdf", b"%PDF")]
)
def test_figure_is_written_in_the_format_of_its_suffix(kind, suffix, magic, tmp_path):
    path = tmp_path / f"figure{suffix}"
    write_figure(SMALL, kind, path)
    assert path.read_bytes().startswith(magic)
    assert [path] == list(tmp_path.iterdir())


def test_figure_is_not_blank(tmp_path):
    write_figure(SMALL, "phase-map", tmp_path / "figure.png")
    assert inked_share((tmp_path / "figure.png").read_bytes()) > 0.01


def test_figure_of_another_kind_or_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'pie' is not a valid Figure"):
        write_figure(SMALL, "pie", tmp_path / "figure.png")
    with pytest.raises(ValueError, match=r"a figure must be a .*; got '.gif'"):
        write_figure(SMALL, Figure.HEAD_MAP, tmp_path / "figure.gif")
    assert list(tmp_path.iterdir()) == []


def test_head_map_draws_a_cell_and_phase_map_a_point_for_each_head(tmp_path):
    def marks(kind: Figure, fill: str) -> int:
        write_figure(SMALL, kind, tmp_path / "figure.svg")
        return len(re.findall(fill, (tmp_path / "figure.svg").read_text()))

    assert marks(Figure.HEAD_MAP, LIGHT.void) == 7 * 3
    colours = f"fill=.({LIGHT.linear}|{LIGHT.heavy_tailed}|{LIGHT.frozen}).*?A"
    assert marks(Figure.PHASE_MAP, colours) >= 7 * 3 * 3


def test_every_chart_is_a_valid_specification_for_the_bundled_runtime():
    rows = records(SMALL)
    charts = [
        ess_curve(rows, LIGHT, "container"),
        error_curves(rows, LIGHT, "container", 0.1),
        phase_map(rows, LIGHT, "container"),
        *(head_map(metric, rows, LIGHT, "container") for metric in METRICS),
    ]
    for chart in charts:
        vega = vl_convert.vegalite_to_vega(dressed(chart, LIGHT), vl_version=VEGA_LITE)
        names = {signal["name"] for signal in vega["signals"]}
        assert {"chosen_n", "chosen_layer", "chosen_head"} <= names


def test_metrics_are_columns_of_the_audit():
    assert {metric.column for metric in METRICS} <= set(SMALL.heads.column_names)


@pytest.mark.parametrize(("low", "high"), [(0.3, 40), (0.02, 9), (20, 9e14), (1, 10)])
def test_logarithmic_scale_has_a_few_ticks_within_its_ends(low, high):
    ticks = log_ticks(low, high)
    assert 2 <= len(ticks) <= 15
    assert low <= min(ticks) < max(ticks) <= high
