"""A GGUF file converted to safetensors once, and kept in the user's cache.

transformers needs some 20 seconds to read even a small GGUF file, and a fraction of one
to read the copy. The copy is keyed by the file's hash, built under a lock, and appears
whole or not at all; one that does not match its own hash is built again.
"""

import contextlib
import hashlib
import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
from filelock import FileLock
from platformdirs import user_cache_dir
from safetensors import SafetensorError
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
)

from largeprompt.errors import ModelNotFoundError

WEIGHTS = "model.safetensors"
# what the reader of GGUF files raises for one that is truncated, damaged or unknown
UNREADABLE = (OSError, ValueError, LookupError, NotImplementedError, struct.error)
SEAL = "sha256"  # file beside the weights that holds their hash


def converted_copy(file: Path) -> tuple[Path, str]:
    """Return the folder with a GGUF file's copy, built when needed, and its hash.

    Raises:
        ModelNotFoundError: transformers cannot read the file, or its copy cannot be
            written.
    """
    sha256 = file_sha256(file)
    root = cache_root() / "models"
    copy = root / sha256
    with kept_in(root), FileLock(root / f"{sha256}.lock"):
        if not is_sound(copy):
            with tempfile.TemporaryDirectory(dir=root, prefix=".building-") as scratch:
                whole = Path(scratch) / "copy"
                convert(file, whole)
                (whole / SEAL).write_text(file_sha256(whole / WEIGHTS))
                shutil.rmtree(copy, ignore_errors=True)
                whole.rename(copy)
    return copy, sha256


def cache_root() -> Path:
    """Return the cache folder: LARGEPROMPT_CACHE, or the user's cache directory."""
    chosen = os.environ.get("LARGEPROMPT_CACHE")
    return Path(chosen) if chosen else Path(user_cache_dir("largeprompt"))


@contextlib.contextmanager
def kept_in(root: Path) -> Iterator[None]:
    """Make a folder of the cache, and say what to do if it cannot be written.

    Raises:
        ModelNotFoundError: The folder, or something inside, cannot be written.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        yield
    except (OSError, SafetensorError) as error:
        raise ModelNotFoundError(
            f"cannot keep a model in {root} ({error}); name another cache folder in "
            "LARGEPROMPT_CACHE"
        ) from error


def is_sound(copy: Path) -> bool:
    """Whether a copy is there and its weights are the ones that were written."""
    try:
        return file_sha256(copy / WEIGHTS) == (copy / SEAL).read_text()
    except (OSError, UnicodeDecodeError):
        return False


def convert(file: Path, folder: Path) -> None:
    """Write a GGUF file's model and tokenizer to a folder, in float32."""
    place = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name}
    try:
        model = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(**place)
    except UNREADABLE as error:
        raise ModelNotFoundError(f"cannot read {file}: {error}") from error
    unquantized(model).save_pretrained(folder, max_shard_size="1TB")
    tokenizer.save_pretrained(folder)


def unquantized(model: PreTrainedModel) -> PreTrainedModel:
    """Return the same model without a trace of the file's quantisation.

    The weights are dequantised already, but the configuration still says how they were
    stored, and transformers refuses to save such a model.
    """
    settings = model.config.to_dict()
    settings.pop("quantization_config", None)
    config = AutoConfig.for_model(**settings)
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(model.state_dict())
    return plain


def file_sha256(path: Path) -> str:
    """Return the hash of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
