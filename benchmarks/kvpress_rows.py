"""kvpress in an environment of its own, on the texts and lengths of `compression`.

    python -m benchmarks.kvpress_rows ENVIRONMENT [TEXT ...]

ENVIRONMENT is a folder; where it is missing a virtual environment is made there, with
kvpress and a transformers that it allows. A text is a built-in one or a file. Rows are
appended to results/kvpress.jsonl, with the versions they were measured with.
"""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.compression import BUDGETS, CONTINUATION, PROMPT, TEXTS
from benchmarks.record import RESULTS, ROOT, Row, facts
from benchmarks.run import show
from largeprompt.hf import load_model, load_text
from largeprompt.hf.converted import converted_copy
from largeprompt.hf.embedded import embedded_file
from largeprompt.hf.texts import token_ids

REQUIREMENTS = [
    "torch==2.13.0",
    "kvpress==0.5.5",
    "transformers<5.3",
]


def main() -> None:
    """Make the environment when needed, run kvpress there, and record its rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=pathlib.Path)
    parser.add_argument("texts", nargs="*", default=TEXTS)
    asked = parser.parse_args()
    python = asked.environment / "bin" / "python"
    if not python.exists():
        made = [sys.executable, "-m", "venv", str(asked.environment)]
        subprocess.run(made, check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS]
        subprocess.run(install, check=True)
    _, tokenizer, _ = load_model("smollm2")
    folder, _ = converted_copy(embedded_file("smollm2"))
    total = PROMPT + CONTINUATION
    tokens = {
        name: token_ids(load_text(name), tokenizer, total).tolist()
        for name in asked.texts
    }
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "tokens.json"
        file.write_text(json.dumps(tokens))
        script = ROOT / "benchmarks" / "kvpress_alone.py"
        command = [str(python), str(script), str(folder), str(file)]
        command += ["--prompt-tokens", str(PROMPT)]
        command += ["--budgets", *map(str, BUDGETS)]
        run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    record([json.loads(line) for line in run.stdout.splitlines()])


def record(cells: list[dict[str, Any]]) -> None:
    """Append the rows of what kvpress did; its versions are the other environment's."""
    shared = {**facts([]), "versions": cells[0]["versions"]}
    RESULTS.mkdir(parents=True, exist_ok=True)
    with (RESULTS / "kvpress.jsonl").open("a", encoding="utf-8") as results:
        for row in (row for cell in cells for row in rows_of(cell)):
            show(row)
            results.write(json.dumps(dataclasses.asdict(row) | shared) + "\n")


def rows_of(cell: dict[str, Any]) -> list[Row]:
    """Return a row for each quantity of one press, budget and text."""
    where = f"{cell['press']}, {100 * cell['budget']:g}%, {cell['text']}"
    quantities = {
        f"KL, {where}": ("nats", cell["kl"]),
        f"top-1 agreement, {where}": ("", cell["top1"]),
        f"increase of the NLL, {where}": ("nats", cell["nll"] - cell["nll_exact"]),
    }
    return [
        Row("kvpress", quantity, unit, value, value, value, cell)
        for quantity, (unit, value) in quantities.items()
    ]


if __name__ == "__main__":
    main()
