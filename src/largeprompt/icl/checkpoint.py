"""Training runs that survive being killed: one directory a run, always whole.

`run.json` says which run it is, `state.safetensors` where it stands. Each is replaced
in one step, so that a reader finds the old file or the new one, never half of it.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from largeprompt.errors import ResultError
from largeprompt.icl.train import Progress, Training, TrainingState

FORMAT = "largeprompt.training/1"
RUN, STATE = "run.json", "state.safetensors"


def train(
    training: Training,
    steps: int,
    directory: Path,
    *,
    checkpoint_every: int = 1000,
    progress: Progress | None = None,
) -> TrainingState:
    """Train up to a number of steps, from the checkpoint in a directory if it has one.

    However often it is interrupted, and wherever, the outcome is the same bits, on the
    same machine and with the same versions.

    Args:
        training: The run.
        steps: How many steps to have made in the end.
        directory: Where its checkpoints live; created when missing.
        checkpoint_every: How many steps apart.
        progress: Called after every step with its number, from 1, and its loss.

    Raises:
        ValueError: `steps` is negative or `checkpoint_every` below 1.
        ResultError: The directory holds another run, one further than `steps`, or a
            damaged checkpoint.
        FloatingPointError: The loss stopped being finite.
    """
    if steps < 0 or checkpoint_every < 1:
        raise ValueError(
            "steps must be at least 0 and checkpoint_every at least 1; "
            f"got {steps} and {checkpoint_every}"
        )
    run = _identify(training, directory)
    state = training.start()
    if (directory / STATE).exists():
        state = load_state(training, directory)
    if state.step > steps:
        raise ResultError(
            f"{directory} is at step {state.step} already; {steps} were asked for"
        )
    while state.step < steps:
        ahead = checkpoint_every - state.step % checkpoint_every
        ahead = min(ahead, steps - state.step)
        state = training.advance(state, ahead, progress)
        _replace(directory / STATE, _pack(state, run))
    return state


def load_state(training: Training, directory: Path) -> TrainingState:
    """Return the state a directory holds of a run.

    Raises:
        ResultError: There is none, it is damaged, or it is of another run.
    """
    path, run = directory / STATE, _run_bytes(training)
    if not path.exists():
        raise ResultError(f"{directory} holds no {STATE}")
    try:
        with safe_open(path, "pt") as file:
            digest = (file.metadata() or {}).get("run")
            names = file.keys()
            tensors = {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise ResultError(f"{path} is damaged: {error}") from error
    if digest != hashlib.sha256(run).hexdigest():
        raise ResultError(f"{path} is a checkpoint of another run")
    return TrainingState(
        parameters=type(training.initial)(**_part(tensors, "parameters.")),
        optimiser=_part(tensors, "optimiser."),
        losses=tensors["losses"],
    )


def _identify(training: Training, directory: Path) -> bytes:
    """Write what the run is, or check that the directory holds this very run."""
    run, path = _run_bytes(training), directory / RUN
    if not path.exists():
        if (directory / STATE).exists():
            raise ResultError(f"{directory} holds {STATE} but no {RUN}")
        directory.mkdir(parents=True, exist_ok=True)
        _replace(path, run)
        return run
    try:
        found = json.loads(path.read_bytes())
    except ValueError as error:
        raise ResultError(f"{path} is damaged: {error}") from error
    wanted = json.loads(run)
    differing = sorted(_differences(found, wanted))
    if differing:
        raise ResultError(
            f"{directory} holds another run; these differ: {', '.join(differing)}"
        )
    return run


def _run_bytes(training: Training) -> bytes:
    """Return the JSON that identifies a run, on this software."""
    environment = {"torch": torch.__version__, "threads": torch.get_num_threads()}
    run = {"format": FORMAT, **training.options(), "environment": environment}
    return json.dumps(run, indent=1, sort_keys=True).encode()


def _pack(state: TrainingState, run: bytes) -> bytes:
    """Return the bytes of a checkpoint."""
    tensors = {"losses": state.losses}
    tensors |= {f"parameters.{k}": v for k, v in state.parameters.tensors().items()}
    tensors |= {f"optimiser.{k}": v for k, v in state.optimiser.items()}
    whole = {name: tensor.clone().contiguous() for name, tensor in tensors.items()}
    return save(whole, {"run": hashlib.sha256(run).hexdigest()})


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose name starts with a prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _differences(found: Any, wanted: Any, name: str = "") -> list[str]:
    """Return the dotted names at which two JSON values differ."""
    if not (isinstance(found, dict) and isinstance(wanted, dict)):
        return [] if found == wanted else [name or "everything"]
    names = []
    for key in found.keys() | wanted.keys():
        inner = f"{name}.{key}" if name else key
        names += _differences(found.get(key), wanted.get(key), inner)
    return names


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that its path holds the old content or the new, never half."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
