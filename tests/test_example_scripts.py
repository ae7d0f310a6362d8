"""The example scripts: each answers one question and draws one figure."""

import pathlib
import runpy
import xml.etree.ElementTree as ElementTree

import altair as alt
import pytest

from largeprompt.report.rendering import rendered

ROOT = pathlib.Path(__file__).parents[1]
SCRIPTS = {path.stem for path in (ROOT / "examples").glob("*.py")}
SMALL = {
    "few_shot_length": {"lengths": (40, 160), "share": 0.2, "draws": 200},
    "halved_cache": {"tokens": 288, "budgets": (0.5,), "questions": ("Why?",)},
    "linear_head": {"lengths": (64, 128), "layer": 1, "head": 2},
    "phase_map": {"lengths": (64, 128), "layers": (0, 1)},
    "short_to_long": {"lengths": (20, 2000), "time": 20.0, "points": 256},
}


def run(name, out):
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))["main"](
        out=out, **SMALL[name]
    )


def marks(picture: bytes) -> int:
    """How many marks carry data: paths and texts that are neither axis nor legend."""
    root = ElementTree.fromstring(picture)
    groups = (g for g in root.iter() if "role-mark" in g.get("class", ""))
    return sum(len(group) for group in groups)


def test_every_script_is_run_here():
    assert set(SMALL) == SCRIPTS


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_script_is_short_and_has_a_place_in_the_documentation(name):
    path = ROOT / "examples" / f"{name}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 100
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert f"python examples/{name}.py" in page
    assert f"images/{name}.svg" in page
    assert marks((ROOT / "docs" / "images" / f"{name}.svg").read_bytes()) > 0


def test_a_figure_without_data_is_seen():
    chart = alt.Chart(alt.InlineData(values=[])).mark_line()
    empty = chart.encode(x="x:Q", y="y:Q").to_dict()
    assert marks(rendered(empty, "Nothing", "at all", ".svg")) == 0


def test_few_shot_length_is_the_first_that_is_enough(tmp_path):
    assert run("few_shot_length", tmp_path / "a.svg") == 160
    assert marks((tmp_path / "a.svg").read_bytes()) > 0


def test_head_trained_on_short_prompts_gains_from_long_ones_down_to_its_limit(tmp_path):
    risks = run("short_to_long", tmp_path / "a.svg")
    trained = risks["trained at n = 20"]
    assert risks["noise"] < risks["trained at n = 20, infinite prompt"] < trained
    assert marks((tmp_path / "a.svg").read_bytes()) > 0


def test_linear_head_gets_a_verdict(tmp_path):
    verdict = run("linear_head", tmp_path / "a.svg")
    assert verdict.startswith(("Linear", "Not linear"))
    assert marks((tmp_path / "a.svg").read_bytes()) > 0


def test_phase_map_counts_every_head_once(tmp_path):
    assert sum(run("phase_map", tmp_path / "a.svg").values()) == 2 * 9
    assert marks((tmp_path / "a.svg").read_bytes()) > 0


def test_halved_cache_keeps_the_model_close_to_itself(tmp_path):
    (divergence,) = run("halved_cache", tmp_path / "a.svg").values()
    assert 0 < divergence < 1  # nats; another text is several away
    assert marks((tmp_path / "a.svg").read_bytes()) > 0
