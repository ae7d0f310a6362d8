"""Triton's kernels on the CPU, by Triton's interpreter."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("shape", [(3, 24, 20)], ids=str)
def test_triton_equals_the_float64_definition_under_its_interpreter(shape):
    run = subprocess.run(
        [sys.executable, "-m", "tests.kernels.triton_check", *map(str, shape)],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "agrees"
