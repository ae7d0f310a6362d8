"""A run that is killed and resumed equals the unbroken one, bit for bit."""

import dataclasses
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from largeprompt.errors import ResultError
from largeprompt.icl import preset
from largeprompt.icl.batches import ProjectedPrompts, PromptStream
from largeprompt.icl.checkpoint import RUN, STATE, load_state, train
from largeprompt.icl.estimators import BatchGradient
from largeprompt.icl.optimisers import SGD, Adam
from largeprompt.icl.parameters import Separate
from largeprompt.icl.responses import Softmax
from largeprompt.icl.train import Training, TrainingState

STEPS = 300
CHILD = """
import pathlib, sys, time
sys.path.insert(0, sys.argv[1])
from test_icl_resume import STEPS, make, torch, train

def tell(step, loss):
    print(step, flush=True)
    time.sleep(0.002)  # never done before it is killed

torch.set_num_threads(1)
train(make(), STEPS, pathlib.Path(sys.argv[2]), checkpoint_every=7, progress=tell)
"""


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Many small operations: more threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def make(seed: int = 5, rate: float = 0.01) -> Training:
    rules = preset("paper-intended")
    stream = PromptStream(rules.task, 17, rules.conventions, ProjectedPrompts(), 19)
    initial = Separate.draw(5, torch.Generator().manual_seed(2))
    return Training(stream, BatchGradient(Softmax()), Adam(rate), initial, seed)


def same_bits(one: TrainingState, other: TrainingState) -> bool:
    return (
        one.losses.equal(other.losses)
        and one.parameters.flat().equal(other.parameters.flat())
        and one.optimiser.keys() == other.optimiser.keys()
        and all(t.equal(other.optimiser[name]) for name, t in one.optimiser.items())
    )


@pytest.fixture(scope="module")
def unbroken() -> TrainingState:
    training = make()
    return training.advance(training.start(), STEPS)


def start_and_kill(directory: Path, moment: random.Random) -> None:
    """Train in a process of its own; kill it, with no warning, at a random moment."""
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parent), str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(moment.randrange(5, 90)):
            assert child.stdout.readline(), "the child trains"
        time.sleep(moment.random() / 100)
        child.kill()  # SIGKILL
        child.wait()
    assert child.returncode < 0, "the child was killed before it had finished"


def test_run_killed_at_random_moments_resumes_to_the_bits_of_an_unbroken_one(
    tmp_path, unbroken
):
    moment = random.Random(0)
    for _ in range(2):
        start_and_kill(tmp_path / "run", moment)
    between = load_state(make(), tmp_path / "run").step
    assert 0 < between < STEPS
    state = train(make(), STEPS, tmp_path / "run", checkpoint_every=7)
    assert same_bits(state, unbroken)
    assert same_bits(load_state(make(), tmp_path / "run"), unbroken)


def test_run_of_another_seed_has_other_bits(unbroken):
    other = make(seed=6)
    assert not same_bits(other.advance(other.start(), STEPS), unbroken)


def test_run_in_pieces_is_the_run_in_one(tmp_path, unbroken):
    for steps in (1, 8, 30, STEPS):
        state = train(make(), steps, tmp_path, checkpoint_every=11)
        assert state.step == steps
    assert same_bits(state, unbroken)
    assert sorted(path.name for path in tmp_path.iterdir()) == [RUN, STATE]


def test_run_json_says_which_run_it_is(tmp_path):
    train(make(), 1, tmp_path)
    record = json.loads((tmp_path / RUN).read_text())
    assert record["stream"]["n"] == 17
    assert record["seed"] == 5
    assert record["environment"]["torch"] == torch.__version__


@pytest.mark.parametrize(
    ("other", "differing"),
    [
        (make(seed=6), "seed"),
        (make(rate=0.02), r"optimiser\.rate"),
        (
            dataclasses.replace(make(), optimiser=SGD(0.01)),
            r"optimiser\.decay, optimiser\.floor, optimiser\.optimiser, "
            r"optimiser\.square_decay",
        ),
        (
            dataclasses.replace(
                make(), initial=Separate.draw(5, torch.Generator().manual_seed(3))
            ),
            r"initial\.key, initial\.output, initial\.query, initial\.value",
        ),
        (
            dataclasses.replace(
                make(), stream=dataclasses.replace(make().stream, n=18)
            ),
            r"stream\.n",
        ),
    ],
    ids=["seed", "rate", "optimiser", "weights", "length"],
)
def test_checkpoint_of_another_run_is_refused_and_the_difference_named(
    tmp_path, other, differing
):
    train(make(), 3, tmp_path)
    before = (tmp_path / STATE).read_bytes()
    with pytest.raises(ResultError, match=f"another run; these differ: {differing}$"):
        train(other, 5, tmp_path)
    with pytest.raises(ResultError, match="is a checkpoint of another run"):
        load_state(other, tmp_path)
    assert (tmp_path / STATE).read_bytes() == before


def test_damaged_or_missing_checkpoints_are_refused(tmp_path):
    with pytest.raises(ResultError, match="holds no state"):
        load_state(make(), tmp_path)
    train(make(), 3, tmp_path)
    whole = (tmp_path / STATE).read_bytes()
    (tmp_path / STATE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ResultError, match="is damaged"):
        train(make(), 5, tmp_path)
    (tmp_path / RUN).write_text("{")
    with pytest.raises(ResultError, match=r"run\.json is damaged"):
        train(make(), 5, tmp_path)
    (tmp_path / RUN).unlink()
    with pytest.raises(ResultError, match=r"holds state\.safetensors but no run\.json"):
        train(make(), 5, tmp_path)


def test_run_that_went_further_is_not_turned_back(tmp_path):
    train(make(), 4, tmp_path)
    with pytest.raises(ResultError, match="at step 4 already; 3 were asked for"):
        train(make(), 3, tmp_path)


@pytest.mark.parametrize(("steps", "every"), [(-1, 1), (1, 0)])
def test_numbers_of_steps_are_checked(tmp_path, steps, every):
    with pytest.raises(ValueError, match=f"got {steps} and {every}"):
        train(make(), steps, tmp_path, checkpoint_every=every)
