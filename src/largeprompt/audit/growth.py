r"""How far the output moves each time that the prompt doubles."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEWEST = 8  # tokens in the shortest prompt


def shorter_lengths(n: int) -> list[int]:
    """Return n / 2, n / 4, ... of at least 8 tokens, in order; n / 2 at least."""
    lengths = [n // 2]
    while lengths[-1] // 2 >= FEWEST:
        lengths.append(lengths[-1] // 2)
    return lengths[::-1]


def doublings(logits: Array, value: Array, lengths: list[int]) -> Array:
    r"""Return $\|T_{2n} - T_n\|^2$ for each row of logits and each length.

    $T_n$ reads the first n of the tokens, the last length is followed by all of them.
    NaN where the tokens of the shorter prompt have no weight that a number can hold.

    Args:
        logits: Of shape (h, n).
        value: The values of the same tokens, of shape (n, v).
        lengths: What `shorter_lengths` gave.
    """
    mass = np.exp(logits - logits.max(-1, keepdims=True))
    ends = [*lengths, logits.shape[-1]]
    parts = [slice(low, high) for low, high in zip([0, *ends], ends, strict=False)]
    totals = np.stack([mass[:, p].sum(-1) for p in parts], 1).cumsum(1)
    sums = np.stack([mass[:, p] @ value[p] for p in parts], 1).cumsum(1)
    with np.errstate(invalid="ignore"):
        outputs = sums / totals[..., None]
    return np.square(np.diff(outputs, axis=1)).sum(-1)
