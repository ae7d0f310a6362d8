"""What an evaluation of compression found: a table of heads, and a row for each method.

`errors.parquet` has a row for each method, budget, text, layer and KV head;
`summary.json` one for each method, budget and text.
"""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any, Self, final

import pyarrow as pa
import pyarrow.parquet as pq

from largeprompt.errors import ResultError

FORMAT = "largeprompt.compression/1"
ERRORS, SUMMARY, PASSKEYS = "errors.parquet", "summary.json", "passkeys.json"
MANIFEST = "manifest.json"
SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("budget", pa.float64()),
        ("text", pa.string()),
        ("layer", pa.int32()),
        ("kv_head", pa.int32()),
        ("error", pa.float64()),
        ("late_error", pa.float64()),
        ("bytes", pa.float64()),
    ]
)
DEFINITIONS = {
    "method": "How the prompt was compressed; exact is the cache as it was.",
    "budget": "The share of the bytes of each KV head's keys and values, everything "
    "that is held counted: tokens in the model's dtype, statistics in float32.",
    "text": "What was read.",
    "layer": "The layer's number.",
    "kv_head": "The number of the KV head in its layer.",
    "error": "|output - exact| / |exact| of a query head's output: the median over the "
    "first queries after the prompt, the mean over the query heads of a KV head.",
    "late_error": "The same over the last queries of the continuation.",
    "bytes": "What is held of the prompt.",
    "mean_error": "The mean of error over all full-attention heads.",
    "kl": "KL(exact, compressed) of the next token, in nats, mean over the "
    "continuation; prompts are compressed before it is seen.",
    "top1": "The share of positions where the most likely token is the exact one's.",
    "nll": "Negative log-likelihood of the text's own next token, in nats.",
    "accuracy": "The share of positions whose most likely token is the text's own.",
    "ms_per_token": "Median milliseconds of a forward pass of a single token.",
    "build_s": "Seconds that compression took, of all layers.",
    "prefill_peak_bytes": "Largest resident memory while the prompt is read and "
    "compressed, above what was resident before; null where it was not measured.",
}


@final
@dataclasses.dataclass(frozen=True, eq=False)
class CompressionResult:
    """The evaluation of several methods on one model.

    Attributes:
        errors: A row for each method, budget, text, layer and KV head.
        summary: A row for each method, budget and text; the exact cache among them.
        passkeys: A row for each method, budget, text and depth of a hidden sentence.
        manifest: What was evaluated, with which arguments, versions and machine.
    """

    errors: pa.Table
    summary: list[dict[str, Any]]
    passkeys: list[dict[str, Any]]
    manifest: dict[str, Any]

    def files(self) -> dict[str, bytes]:
        """Return the name and content of each file, the manifest last."""
        table = pa.BufferOutputStream()
        pq.write_table(self.errors, table)
        files = {
            ERRORS: table.getvalue().to_pybytes(),
            SUMMARY: _json(self.summary),
            PASSKEYS: _json(self.passkeys),
        }
        hashes = {name: hashlib.sha256(x).hexdigest() for name, x in files.items()}
        return {**files, MANIFEST: _json({**self.manifest, "sha256": hashes})}

    @classmethod
    def load(cls, directory: Path | str) -> Self:
        """Read the files of a directory.

        Raises:
            ResultError: A file is missing or damaged, or they do not belong together.
        """
        directory = Path(directory)
        names = (ERRORS, SUMMARY, PASSKEYS, MANIFEST)
        try:
            files = {name: (directory / name).read_bytes() for name in names}
            manifest = json.loads(files[MANIFEST])
        except (OSError, ValueError) as error:
            raise ResultError(f"no evaluation in {directory}: {error}") from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ResultError(f"{directory / MANIFEST} is not of the format {FORMAT}")
        for name, digest in manifest.pop("sha256", {}).items():
            if hashlib.sha256(files.get(name, b"")).hexdigest() != digest:
                raise ResultError(
                    f"{directory / name} is truncated, or not the one that {MANIFEST} "
                    "describes"
                )
        return cls(
            pq.read_table(pa.BufferReader(files[ERRORS])),
            json.loads(files[SUMMARY]),
            json.loads(files[PASSKEYS]),
            manifest,
        )


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode()
