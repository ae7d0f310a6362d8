"""The figure of a plan."""

import vl_convert

from largeprompt.laws import solve
from largeprompt.laws.plan_curves import plan_curves, query_plan_curves
from largeprompt.laws.query_plan import solve_over_queries
from largeprompt.laws.spectrum import QueryLawSpectrum
from largeprompt.report.palette import VEGA_LITE
from largeprompt.report.plan_figure import plan_chart, write_plan_figure
from tests.report.browser import inked_share

PLAN = solve(n=3000, logit_variance=3.0)


def test_plan_figure_names_its_curves_and_phases(tmp_path):
    write_plan_figure(plan_curves(PLAN), PLAN, tmp_path / "plan.svg")
    drawn = (tmp_path / "plan.svg").read_text()
    for text in ("exact law", "proven bound", "leading order", "3,000 tokens"):
        assert text in drawn
    for text in ("frozen", "heavy-tailed", "linear"):
        assert f">{text}</text>" in drawn


def test_plan_figure_is_not_blank(tmp_path):
    write_plan_figure(plan_curves(PLAN), PLAN, tmp_path / "plan.png")
    assert inked_share((tmp_path / "plan.png").read_bytes()) > 0.01


def test_plan_figure_of_a_random_query_has_neither_phases_nor_bound(tmp_path):
    spectrum = QueryLawSpectrum((0.2,), (0.2,), 1.0)
    plan = solve_over_queries(spectrum, n=300)
    curves = query_plan_curves(plan, spectrum)
    write_plan_figure(curves, plan, tmp_path / "plan.svg")
    drawn = (tmp_path / "plan.svg").read_text()
    assert "a random query" in drawn
    assert "proven bound" not in drawn
    assert ">linear</text>" not in drawn


def test_plan_page_asks_the_network_for_nothing(tmp_path):
    write_plan_figure(plan_curves(PLAN), PLAN, tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text()
    assert "<script src=" not in page
    assert "cdn.jsdelivr" not in page


def test_plan_chart_is_valid_at_both_ends_of_the_range():
    for n, variance in ((1, 0.0), (10**15, 40.0), (20, 400.0)):
        plan = solve(n=n, logit_variance=variance)
        spec = plan_chart(plan_curves(plan), plan).to_dict()
        vega = vl_convert.vegalite_to_vega(spec, vl_version=VEGA_LITE)
        assert vega["marks"]
