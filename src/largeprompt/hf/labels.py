"""The tokens that an audit points at, in words."""

from collections.abc import Sequence

from jaxtyping import Int64
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from largeprompt.audit.profiles import TOKEN_LISTS
from largeprompt.audit.rows import Row
from largeprompt.audit.tables import CURVES

LISTS = frozenset(kind.name for kind in TOKEN_LISTS)


def labelled(
    rows: Sequence[Row], tokens: Int64[Tensor, " n"], tokenizer: PreTrainedTokenizerBase
) -> list[Row]:
    """Return rows of an audit whose lists of tokens say what the tokens are.

    Args:
        rows: Rows with their curves.
        tokens: The text that was read.
        tokenizer: What turns a token into words.
    """
    words: dict[int, str] = {}

    def word(position: float) -> str:
        token = int(tokens[int(position)])
        if token not in words:
            words[token] = str(tokenizer.decode([token]))
        return words[token]

    return [
        {
            **row,
            CURVES: [
                {**curve, "labels": [word(x) for x in curve["x"]]}
                if curve["profile"] in LISTS
                else curve
                for curve in row[CURVES]
            ],
        }
        for row in rows
    ]
