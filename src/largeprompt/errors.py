"""What can go wrong in a way the caller can act on.

A wrong value is a `ValueError` that says what must hold and what was given. The errors
here are about the world outside: the command line turns exactly these into one line
and exit status 1.
"""


class LargePromptError(Exception):
    """The base of every error a caller can act on."""


class UnreachableTargetError(LargePromptError):
    """No admissible value of the unknown meets the target."""


class UnsupportedModelError(LargePromptError):
    """The model does something that attention as recomputed here does not do."""


class ModelNotFoundError(LargePromptError):
    """No model answers to this name or path, or its files cannot be read."""


class TextError(LargePromptError):
    """A text is missing, empty, not UTF-8, or shorter than the longest prompt."""


class ParityError(LargePromptError):
    """Attention recomputed from the captured q, k, v differs from the model's own."""


class ResultError(LargePromptError):
    """A saved result is missing, truncated, of another format, or in the way."""
