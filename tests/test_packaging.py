"""What a user installs: the wheel, its metadata, its types, and how fast it starts."""

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import largeprompt

ROOT = Path(__file__).parents[1]
OPTIONAL = ("transformers", "gguf", "numba", "accelerate", "dask", "distributed")
IMPORT_SECONDS = 0.3


def seconds_of(statement: str) -> float:
    """The time a statement takes in a fresh interpreter: the least of five."""
    code = (
        "import sys, time; before = time.perf_counter()\n"
        f"{statement}\nprint(time.perf_counter() - before)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        for _ in range(5)
    ]
    return min(float(run.stdout) for run in runs)


def test_importing_the_package_takes_less_than_a_third_of_a_second():
    assert seconds_of("import largeprompt") < IMPORT_SECONDS
    assert seconds_of("import time; time.sleep(0.31)") > IMPORT_SECONDS  # it can fail


def test_every_extra_and_every_dependency_is_pinned_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "requirements" / "constraints.txt").read_text().splitlines()
    pins = [line.partition("==")[0].lower() for line in lines if "==" in line]
    assert sorted(set(pins)) == sorted(pins)
    wanted = [*project["dependencies"]]
    wanted += [
        name for extra in project["optional-dependencies"].values() for name in extra
    ]
    for requirement in wanted:
        name = requirement.partition(";")[0].partition(">")[0].partition("[")[0].strip()
        assert name.lower().replace("_", "-") in {p.replace("_", "-") for p in pins}


@pytest.mark.parametrize(
    "shell",
    [
        "bash",
        pytest.param("zsh", marks=pytest.mark.slow),  # a process each
        pytest.param("fish", marks=pytest.mark.slow),
    ],
)
def test_the_command_line_completes_in_a_shell(shell):
    environment = {
        **os.environ,
        "_LARGEPROMPT_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": "largeprompt co",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "largeprompt co",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    script = Path(sys.executable).with_name("largeprompt")
    run = subprocess.run(
        [script], env=environment, capture_output=True, text=True, check=False
    )
    assert {"compare", "compress-eval", "concentration"} <= set(
        run.stdout.replace('"', " ").replace(":", " ").split()
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this tree, built from a copy of what it is built from."""
    place = tmp_path_factory.mktemp("wheel")
    copy = place / "tree"
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "src"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in [
        *tracked.stdout.splitlines(),
        "pyproject.toml",
        "README.md",
        "LICENSE",
    ]:
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", place, copy], check=True)
    (built,) = place.glob("*.whl")
    return built


@pytest.mark.slow  # builds a wheel, which fetches setuptools
def test_the_wheel_holds_the_package_its_types_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (n for n in names if n.endswith("METADATA"))
        told = archive.read(metadata).decode()
    assert "largeprompt/py.typed" in names
    assert any(name.startswith("largeprompt/report/assets/") for name in names)
    assert {name.partition("/")[0] for name in names} == {
        "largeprompt",
        f"largeprompt-{largeprompt.__version__}.dist-info",
    }
    assert "Provides-Extra: hf" in told
    assert "Provides-Extra: distributed" in told


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The scripts of an empty environment with the wheel and its core alone."""
    place = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    constraints = ROOT / "requirements" / "constraints.txt"
    pip = [place / "bin" / "pip", "install", "--quiet", "--constraint", constraints]
    subprocess.run([*pip, wheel], check=True)
    return place / "bin"


@pytest.mark.slow  # installs torch into an empty environment: minutes
def test_the_core_alone_plans_measures_and_reproduces(installed, tmp_path):
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [installed / "largeprompt", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )

    listed = subprocess.run(
        [installed / "pip", "list", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    here = {entry["name"].lower() for entry in json.loads(listed.stdout)}
    assert here.isdisjoint(OPTIONAL)
    assert run("--version").stdout == f"largeprompt {largeprompt.__version__}\n"
    plan = run("plan", "--logit-variance", "2", "--eps", "0.05", "--json")
    assert json.loads(plan.stdout)["n"] > 1
    small = ["--seeds", "2", "--queries", "2", "--prompts", "3", "--lengths", "9,40"]
    measured = run("concentration", "--out", "concentration", *small)
    assert measured.returncode == 0, measured.stderr
    reproduced = run("reproduce", "--fast", "--out", "paper")
    assert reproduced.returncode == 0, reproduced.stderr
    assert (tmp_path / "paper" / "reproduction.html").exists()
    doctor = run("doctor")
    assert doctor.returncode == 0, doctor.stdout
    assert "missing; pip install 'largeprompt[hf]'" in doctor.stdout
    for command in ("audit", "ablate", "compress-eval", "depth"):
        refused = run(command, "smollm2", "--out", "out")
        assert refused.returncode == 1
        assert "pip install 'largeprompt[hf]'" in refused.stderr
        assert "Traceback" not in refused.stderr
