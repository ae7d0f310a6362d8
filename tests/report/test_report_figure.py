"""Figures as files, for papers and READMEs."""

import re

import pyarrow.csv
import pytest
import scipy.stats
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from largeprompt.report import Figure, figure_chart, figure_data, write_figure
from largeprompt.report.curves import error_curves, ess_curve
from largeprompt.report.head_map import head_map
from largeprompt.report.law_chart import law_chart
from largeprompt.report.metrics import METRICS, log_ticks
from largeprompt.report.palette import LIGHT, VEGA_LITE, dressed
from largeprompt.report.phase_map import phase_map
from largeprompt.report.records import records
from largeprompt.report.scatter import rank_correlation
from largeprompt.report.shares import linear_shares, share_curve
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


@pytest.mark.parametrize("kind", list(Figure))
def test_figure_s_numbers_are_written_beside_it(kind, tmp_path):
    path = tmp_path / "figure.csv"
    write_figure(SMALL, kind, path)
    written = pyarrow.csv.read_csv(path)
    assert written.to_pydict() == figure_data(SMALL, kind).to_pydict()
    assert written.num_rows >= 7 * 3 or kind is Figure.LINEAR_HEADS


def test_figure_in_a_notebook_draws_the_same_points_as_its_file(tmp_path):
    write_figure(SMALL, Figure.LAW, tmp_path / "figure.svg")
    spec = figure_chart(SMALL, Figure.LAW).to_dict()
    shown = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    filled = re.compile(r"<path[^>]*translate\(([^)]*)\)[^>]*fill=.#")
    drawn = (tmp_path / "figure.svg").read_text()
    assert len(filled.findall(shown)) == len(filled.findall(drawn)) >= 7 * 3


def test_share_of_linear_heads_is_counted_by_hand():
    rows = records(SMALL)
    shares = linear_shares(rows, 0.1)
    for point in shares:
        here = [row for row in rows if row["n"] == min(point["n"], 1000)]
        if point["criterion"] == "sinks and recent kept":
            within = [row["linear_error_kept"] <= 0.1 for row in here]
        elif point["criterion"] == "held out, exact law":
            needed = [row["tokens_needed"] for row in rows if row["n"] == 1000]
            within = [n is not None and n <= point["n"] for n in needed]
        else:
            continue
        assert point["heads"] == sum(within), point
        assert point["share"] == sum(within) / 21
    assert max(point["n"] for point in shares) == 1_000_000


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_rank_correlation_is_scipy_s(pairs):
    rows = [{"a": a, "b": b} for a, b in pairs]
    found = rank_correlation(rows, "a", "b")
    if min(len({a for a, _ in pairs}), len({b for _, b in pairs})) < 2:
        assert found is None
    else:
        a, b = zip(*pairs, strict=True)
        expected, _ = scipy.stats.spearmanr(a, b)
        assert found == pytest.approx(expected, abs=1e-12)


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
        share_curve(rows, LIGHT, "container", 0.1),
        law_chart(rows, LIGHT, "container"),
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
