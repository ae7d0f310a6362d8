"""Compare the ratios of each case's last two recorded runs.

    python -m benchmarks.regression            # every case
    python -m benchmarks.regression law        # one case

Times depend on the machine and its load; a ratio of two times taken in one run, of
bytes or of errors, does so far less. A ratio is worse when its median has moved the
wrong way by more than a tenth, and beyond the spread of both runs. The exit status is 1
if one is.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks import record
from benchmarks.run import asked

RATIO = "x"
TOLERANCE = 1.1
SMALLER_IS_BETTER = (
    "time of an audit over",
    "time of a step over",
    "time over",
    "memory over",
    "bytes over",
    "bound over",
)
LARGER_IS_BETTER = (
    "speed of",
    "speed over",
    "steps per second over",
    "time of SGD over",
    "published steps",
    "gradient variance over",
)
NEITHER_IS_BETTER = ("bytes reported by the cache over",)


def last_two(case: str) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the rows of the run before the last and of the last, by quantity.

    None if there are no two runs.
    """
    path = record.RESULTS / f"{case}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    dates = sorted({row["date"] for row in rows})[-2:]
    if len(dates) < 2:
        return None
    before, after = ({r["quantity"]: r for r in rows if r["date"] == d} for d in dates)
    return before, after


def is_worse(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a ratio has moved the wrong way, beyond tolerance and spread.

    Of a quantity that neither list names, both ways are wrong.
    """
    name = after["quantity"]
    grown = (
        after["median"] > TOLERANCE * before["median"]
        and after["least"] > before["most"]
    )
    shrunk = (
        TOLERANCE * after["median"] < before["median"]
        and after["most"] < before["least"]
    )
    return (grown and not _named(name, LARGER_IS_BETTER)) or (
        shrunk and not _named(name, SMALLER_IS_BETTER)
    )


def _named(quantity: str, words: tuple[str, ...]) -> bool:
    return any(word in quantity for word in words)


def findings(case: str) -> Iterator[tuple[bool, str]]:
    """Yield whether each ratio of a case is worse, and a line about it."""
    runs = last_two(case)
    if runs is None:
        return
    before, after = runs
    for name, row in after.items():
        if row["unit"] == RATIO and name in before:
            worse = is_worse(before[name], row)
            verdict = "WORSE" if worse else "as good"
            moved = f"{before[name]['median']:.4g} to {row['median']:.4g}"
            yield worse, f"{verdict:<7} {case}: {name}: {moved}"


def main() -> int:
    """Compare the cases that were asked for and return an exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    found = [finding for case in asked(parser) for finding in findings(case)]
    for _, line in found:
        print(line)
    worse = sum(is_one for is_one, _ in found)
    print(f"{len(found)} ratios of two runs compared, {worse} worse")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
