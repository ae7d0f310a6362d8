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


class CacheError(LargePromptError):
    """A compressed cache is used without its attention, or asked for what is gone."""


class SweepError(LargePromptError):
    """A sweep cannot go on: what is done is kept, and the same command resumes it."""


class NotFiniteError(LargePromptError):
    """A model computes a NaN or an infinity."""


class DeviceError(LargePromptError):
    """The device that was asked for is not there."""


class MissingKernelError(LargePromptError):
    """The package that a decoding kernel needs is not installed."""


class NoHeadError(LargePromptError):
    """No head of the model is what was asked for."""


class ArraysError(LargePromptError):
    """A file of queries, keys and values is missing, or lacks what it should hold."""


class ComparisonError(LargePromptError):
    """Two results cannot be compared; the message says in what they differ."""
