"""`largeprompt doctor`, the extras, and what a missing package becomes."""

import sys
from importlib.metadata import PackageNotFoundError

import pytest

from largeprompt.cli import doctor as module
from largeprompt.cli import doctor_checks
from largeprompt.cli.extras import extra_of, packages_of


def test_doctor_names_versions_devices_models_and_right_numbers(command):
    ran = command("doctor")
    assert ran.status == 0, ran.stdout
    kinds = [line.split()[0] for line in ran.stdout.splitlines()]
    assert kinds[0] == "largeprompt"
    assert {"packages", "extra", "device", "model", "check"} == set(kinds[1:])
    checks = [line for line in ran.stdout.splitlines() if line.startswith("check")]
    assert len(checks) == len(doctor_checks.CHECKS)
    assert all(": right," in line for line in checks)
    assert "model     smollm2: here" in ran.stdout


def test_the_check_of_the_law_sees_a_millionth(monkeypatch):
    honest = doctor_checks.KNOWN
    assert doctor_checks.exact_law().right
    wrong = {key: (1.000001 * phi, psi) for key, (phi, psi) in honest.items()}
    monkeypatch.setattr(doctor_checks, "KNOWN", wrong)
    assert not doctor_checks.exact_law().right


def test_the_checks_of_definition_and_kernel_see_a_thousandth(monkeypatch):
    honest = doctor_checks.attend
    assert doctor_checks.definition().right
    assert doctor_checks.kernel().right
    monkeypatch.setattr(
        doctor_checks, "attend", lambda *a, **k: 1.001 * honest(*a, **k)
    )
    assert not doctor_checks.definition().right
    assert not doctor_checks.kernel().right


def test_doctor_ends_with_status_one_if_a_number_is_wrong(command, monkeypatch):
    wrong = {"a number": lambda: doctor_checks.Finding(False, "off by 1")}
    monkeypatch.setattr(doctor_checks, "CHECKS", wrong)
    ran = command("doctor")
    assert ran.status == 1
    assert "a number: WRONG, off by 1" in ran.stdout


def test_doctor_says_which_extra_to_install(command, monkeypatch):
    def version(name: str) -> str:
        if name in ("numba", "dask"):
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(module, "version", version)
    ran = command("doctor", "--no-check")
    assert "hf: numba missing; pip install 'largeprompt[hf]'" in ran.stdout
    assert "dask missing; pip install 'largeprompt[distributed]'" in ran.stdout
    assert "check" not in ran.stdout


def test_extras_are_those_of_the_metadata():
    assert {"transformers", "gguf", "numba"} <= set(packages_of("hf"))
    assert packages_of("distributed") == ["dask", "distributed"]
    assert extra_of("transformers.models") == "hf"
    assert extra_of("torch") is None


@pytest.mark.parametrize(
    ("package", "status", "told"),
    [
        ("transformers", 1, "pip install 'largeprompt[hf]'"),
        ("dask", 1, "pip install 'largeprompt[distributed]'"),
    ],
)
def test_a_command_that_misses_an_extra_says_which(
    command, monkeypatch, tmp_path, package, status, told
):
    for name in [n for n in sys.modules if n.startswith("largeprompt.hf")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "sweep.toml").write_text(
        'experiment = "law"\n[options]\nn = 16\nlogit_variance = 0.5\n'
    )
    arguments = {
        "transformers": ["depth", "smollm2", "--out", tmp_path / "out"],
        "dask": [
            *("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "out"),
            *("--scheduler", "tcp://127.0.0.1:9"),
        ],
    }[package]
    ran = command(*arguments)
    assert ran.status == status
    assert told in ran.stderr


def test_a_package_that_no_extra_brings_is_a_fault_of_ours(monkeypatch):
    from largeprompt.cli import app

    def broken() -> None:
        raise ModuleNotFoundError("No module named 'x'", name="x")

    monkeypatch.setattr(app, "app", broken)
    with pytest.raises(ModuleNotFoundError):
        app.run()
