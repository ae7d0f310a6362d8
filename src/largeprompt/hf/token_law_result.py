"""What was found of a model's token laws: a row a layer, and its files."""

import dataclasses
from pathlib import Path
from typing import Any, Self, final

import pyarrow as pa

from largeprompt.hf.result_files import (
    MANIFEST,
    as_parquet,
    read_files,
    read_parquet,
    with_manifest,
)

FORMAT = "largeprompt.token-law/1"
TABLE = "token_law.parquet"
FILES = (TABLE, MANIFEST)
HIDDEN, KEYS = "hidden states", "keys"

DEFINITIONS = {
    "what": "hidden states (the residual stream) or keys (as the softmax meets them).",
    "layer": "The layer that they enter; for hidden states one more, after the last.",
    "kv_head": "The key/value head; null for hidden states.",
    "tokens": "Tokens judged: the text's without its first four.",
    "effective_dim": "Participation ratio of the covariance's spectrum.",
    "kolmogorov": "Mean over directions of the largest difference to the normal law.",
    "wasserstein": "Mean over directions of the 1-Wasserstein distance to it.",
    "kurtosis": "Median over directions of the excess kurtosis.",
    "kolmogorov_gaussian": "kolmogorov of as many independent Gaussian tokens with the "
    "same mean and covariance: what is left when the law is Gaussian.",
    "wasserstein_gaussian": "The same for wasserstein.",
    "kurtosis_gaussian": "The same for kurtosis.",
}
NUMBERS = ("kolmogorov", "wasserstein", "kurtosis")
SCHEMA = pa.schema(
    [
        ("what", pa.string()),
        ("layer", pa.int32()),
        ("kv_head", pa.int32()),
        ("tokens", pa.int64()),
        ("effective_dim", pa.float64()),
        *((name, pa.float64()) for name in NUMBERS),
        *((f"{name}_gaussian", pa.float64()) for name in NUMBERS),
    ]
)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class TokenLawResult:
    """The distances of one model's tokens to Gaussian laws, on one text.

    Attributes:
        table: A row for the hidden states of each layer and for each layer's keys.
        manifest: What was measured, with which versions and where.
    """

    table: pa.Table
    manifest: dict[str, Any]

    def files(self) -> dict[str, bytes]:
        """Return the files by name, the manifest last."""
        return with_manifest({TABLE: as_parquet(self.table)}, self.manifest)

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read the files of a result.

        Raises:
            ResultError: A file is missing, truncated or of another format.
        """
        contents, manifest = read_files(directory, (TABLE,), FORMAT)
        return cls(read_parquet(contents[TABLE]), manifest)
