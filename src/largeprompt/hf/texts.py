"""Texts to audit on: two that every machine has, or a file."""

import dataclasses
import hashlib
import sysconfig
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
        name: `prose` (the help topics of Python's documentation), `code` (the sources
            of its standard library), both in alphabetical order; or a path.

    Raises:
        TextError: The file is missing, empty or not UTF-8.
    """
    if name == PROSE:
        return Text(name, "\n\n".join(topics[key] for key in sorted(topics)))
    if name == CODE:
        library = Path(sysconfig.get_path("stdlib"))
        sources = sorted(library.glob("[a-z]*.py"))
        return Text(name, "\n\n".join(path.read_text("utf-8") for path in sources))
    try:
        content = Path(name).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(f"{name} is not UTF-8: {error}") from error
    except OSError as error:
        raise TextError(
            f"no text at {name}; give a file, {PROSE!r} or {CODE!r}"
        ) from error
    if not content.strip():
        raise TextError(f"{name} is empty")
    return Text(name, content)


def token_ids(
    text: Text, tokenizer: PreTrainedTokenizerBase, count: int
) -> Int64[Tensor, " n"]:
    """Return the first `count` tokens of a text, special tokens as the model has them.

    Raises:
        TextError: The text has fewer tokens.
    """
    for content in (text.content[: CHARACTERS * count], text.content):
        ids = tokenizer(content, verbose=False)["input_ids"][:count]
        if len(ids) == count:
            return torch.tensor(ids)
    raise TextError(
        f"{text.name} has {len(ids)} tokens; the longest prompt needs {count}"
    )
