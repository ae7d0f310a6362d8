"""What a specification is read as, and what it is refused for."""

import resource
import subprocess
import sys

import pytest

from largeprompt.experiments.sweep import Shard, read_specification, specification
from largeprompt.experiments.sweep.catalogue import CATALOGUE, experiment_named
from largeprompt.experiments.sweep.lab.concentration import LAWS
from largeprompt.experiments.sweep.lab.published import PRESETS
from largeprompt.experiments.token_laws import TokenLaw
from largeprompt.icl.presets import PRESETS as PUBLISHED
from tests.experiments.sweep_probe import NAME

LAW = {"experiment": "law", "grid": {"n": [9, 20], "logit_variance": [1, 2.5]}}


def test_a_grid_has_a_cell_for_every_combination_with_defaults_filled_in():
    grid = {"law": ["cube", "gaussian"], "n": [8, 16, 32]}
    shared = {"queries": 3}
    sweep = specification(
        {"experiment": "concentration", "options": shared, "grid": grid}
    )
    seen = [
        (c.configuration["law"], c.configuration["n"]) for c in sweep.cells.values()
    ]
    assert seen == [(law, n) for law in grid["law"] for n in grid["n"]]
    assert {c.configuration["queries"] for c in sweep.cells.values()} == {3}
    assert {c.configuration["prompts"] for c in sweep.cells.values()} == {32}
    assert sweep.axes == ("law", "n")


def test_several_grids_are_read_one_after_the_other():
    grids = [
        {"n": [9], "logit_variance": [1.0]},
        {"n": {"from": 10, "to": 90, "factor": 3}, "logit_variance": [2.0]},
        {"n": {"from": 1, "to": 6, "step": 2}, "logit_variance": [3.0]},
    ]
    sweep = specification({"experiment": "law", "grid": grids})
    assert [c.configuration["n"] for c in sweep.cells.values()] == [
        *(9, 10, 30, 90),
        *(1, 3, 5),
    ]


def test_a_cell_is_identified_by_what_it_is_not_by_how_it_is_written():
    one = specification(LAW | {"grid": {"n": [9.0], "logit_variance": [1]}})
    other = specification(
        {"experiment": "law", "options": {"logit_variance": 1.0}, "grid": {"n": [9]}}
    )
    assert list(one.cells) == list(other.cells)


def test_identity_changes_with_every_option_and_with_the_code_and_key_does_not():
    sweep = specification(LAW, "code-a")
    assert len({i.partition(".")[0] for i in sweep.cells}) == 4
    edited = specification(LAW, "code-b")
    assert set(sweep.cells).isdisjoint(edited.cells)
    keys, again = ([cell.key for cell in s.cells.values()] for s in (sweep, edited))
    assert keys == again
    assert len(set(keys)) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"experiment": "concentrations"}, "the nearest is 'concentration'"),
        (LAW | {"optoins": {}}, "the nearest is 'options'"),
        (LAW | {"options": {"logit_varianze": 1}}, "nearest is 'logit_variance'"),
        (LAW | {"grid": {"m": [1]}}, "the nearest is 'n'"),
        (LAW | {"grid": {"n": {"from": 1, "top": 2}}}, "the nearest is 'to'"),
        (
            {"experiment": "concentration", "grid": {"law": ["gausian"], "n": [9]}},
            "the nearest is 'gaussian'",
        ),
        (
            {"experiment": "population", "grid": {"preset": ["he-et-all"], "n": [9]}},
            "the nearest is 'he-et-al'",
        ),
        (LAW | {"grid": {"n": [9, 9], "logit_variance": [1]}}, "got n=9"),
        (LAW | {"grid": {"n": [9, 9.0], "logit_variance": [1]}}, "must differ"),
        (LAW | {"grid": [LAW["grid"], {"n": [20], "logit_variance": [1]}]}, "twice"),
        (LAW | {"options": {"n": 9}}, "got n in both"),
        (LAW | {"grid": {"n": [9]}}, "logit_variance has no default"),
        (
            LAW | {"grid": {"n": [9.5], "logit_variance": [1]}},
            "n must be a whole number; got 9.5",
        ),
        (
            LAW | {"grid": {"n": [True], "logit_variance": [1]}},
            "n must be a whole number; got True",
        ),
        (LAW | {"grid": {"n": 9}}, "must be a list of values"),
        (LAW | {"grid": {"n": []}}, "must be a list of values"),
        (LAW | {"grid": {"n": {"from": 9, "to": 1}}}, "must grow"),
        (LAW | {"grid": {"n": {"from": 0, "to": 9, "factor": 2}}}, "must grow"),
        (LAW | {"grid": {"n": {"from": 0, "to": 10**9}}}, "at most 1,000,000"),
        (LAW | {"grid": {"n": [0], "logit_variance": [1]}}, "n must be from 1"),
        (LAW | {"grid": 3}, "grid must be a table"),
        ({"grid": {}}, "experiment must be a name"),
        ({"experiment": "nowhere:Cell"}, "must be importable"),
        ({"experiment": "json:dumps"}, "must be a subclass of Experiment"),
    ],
)
def test_a_wrong_specification_is_refused_with_what_is_wrong(content, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        specification(content)


def test_a_file_that_is_no_toml_is_refused(tmp_path):
    path = tmp_path / "sweep.toml"
    with pytest.raises(ValueError, match="must be a file that can be read"):
        read_specification(path)
    path.write_text("experiment = \n")
    with pytest.raises(ValueError, match="must be a TOML file"):
        read_specification(path)


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "-1/2", "1/0"])
def test_a_wrong_shard_is_refused(text):
    with pytest.raises(ValueError, match="shard"):
        Shard.read(text)


@pytest.mark.parametrize("count", [1, 3, 7, 60])
def test_shards_are_disjoint_and_together_the_sweep(count):
    grid = {"number": {"from": 1, "to": 50}}
    sweep = specification({"experiment": NAME, "grid": grid})
    shards = [Shard(k + 1, count).cells(sweep) for k in range(count)]
    together = [identity for shard in shards for identity in shard]
    assert sorted(together) == sorted(sweep.cells)
    sizes = [len(shard) for shard in shards]
    assert max(sizes) - min(sizes) <= 1


def test_names_that_are_repeated_for_speed_are_those_of_the_lab():
    assert list(LAWS) == [law.value for law in TokenLaw]
    assert set(PRESETS) == set(PUBLISHED)
    assert all(experiment_named(name).__doc__ for name in CATALOGUE)


LISTED = """
import sys
from largeprompt.cli import main
sys.argv = ["largeprompt", "sweep", sys.argv[1], "--out", sys.argv[2], "--list"]
try:
    main()
finally:
    print("torch" in sys.modules, file=sys.stderr)
"""


def test_ten_thousand_cells_are_listed_in_under_two_seconds_without_torch(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(
        'experiment = "concentration"\n[grid]\nlaw = ["gaussian", "decaying"]\n'
        "n = {from = 1, to = 50}\nseed = {from = 0, to = 99}\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    shown = subprocess.run(
        [sys.executable, "-c", LISTED, path, tmp_path / "out"],
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert len(shown.stdout.splitlines()) == 10_000
    assert shown.stderr == "False\n"
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used < 2  # of one processor, whatever else the machine does
    assert not (tmp_path / "out").exists()
